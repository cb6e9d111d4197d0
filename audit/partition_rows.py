"""Rows of batches that only create and change partitions, made as columns.

Nearly all records of a large log are in such batches. Their rows are not made one by one: what a
batch has in common is kept once per batch, and equal states share their lists.

Runs on Spark executors: its imports must not reach an event loop, gRPC or protobuf.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, count, repeat
from operator import attrgetter
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from audit.arrow_schema import arrow_schema
from audit.history_rows import HistoryWanted, Position, json_text
from audit.scan import PartitionChanges
from audit.schema import CHANGE, HISTORY, PARTITIONS, POSITION, SET
from audit.segment_file import FoundBatch
from statemachine.partition_updates import PartitionUpdate, PartitionUpdates
from statemachine.payload import record_payload, text_of_uuid, written_version
from statemachine.sections.partitions import PartitionState

_NAME = attrgetter("__name__")
_OF_STATE = {
    "leader": "leader",
    "leader_epoch": "leader_epoch",
    "partition_epoch": "partition_epoch",
    "replicas": "replicas",
    "isr": "isr",
    "removing_replicas": "removing",
    "adding_replicas": "adding",
    "elr": "elr",
    "last_known_elr": "last_known_elr",
    "leader_recovery_state": "leader_recovery_state",
    "directories": "directories",
}
"""The field of ``PartitionState`` that fills a column."""
_OF_BATCH = [*(column.name for column in (*POSITION, *CHANGE)), "digest"]
_BATCH_END = _OF_BATCH.index("batch_end_offset")
_FRAMES_MAX = 1 << 15


class _Group(NamedTuple):
    """The wanted rows of one batch."""

    offsets: Sequence[int]
    changes: PartitionChanges
    common: tuple[Any, ...]
    """What the rows have in common, by ``_OF_BATCH``; offset and type are those of each record."""


class PartitionRows:
    """The rows of such batches in one table, in log order, until ``take`` returns them."""

    def __init__(self, table: str, wanted: HistoryWanted) -> None:
        """``wanted`` limits the rows of ``history``; those of ``partitions`` are all wanted."""
        self._schema = arrow_schema(table)
        self._wanted = wanted
        self._own_columns = {HISTORY: self._history_columns, PARTITIONS: _state_columns}[table]
        self._groups: list[_Group] = []
        self._frames: dict[int, _Frame] = {}
        """By the identity of a record, which its frame keeps."""
        self.count = 0

    def add(
        self,
        batch: FoundBatch,
        changes: PartitionChanges,
        committed_offset: int,
        chosen: Sequence[int] | None = None,
    ) -> None:
        """Add the changes of a batch, or those with the ``chosen`` numbers, which rise from 0.

        Each is visible at the end of the batch.
        """
        header = batch.header
        offsets: Sequence[int] = range(header.base_offset, header.end_offset)
        if chosen is not None:
            offsets = [header.base_offset + number for number in chosen]
            changes = changes.chosen(chosen)
        position = Position(batch, changes.headers, committed_offset)
        common = (*position.common(), header.end_offset, SET, batch.digest.hex() or None)
        self._groups.append(_Group(offsets, changes, common))
        self.count += len(offsets)

    def drop_behind(self, end_offset: int) -> None:
        """Drop the rows of batches that end above ``end_offset``."""
        groups = self._groups
        while groups and groups[-1].common[_BATCH_END] > end_offset:
            self.count -= len(groups.pop().offsets)

    def take(self) -> pa.RecordBatch:
        """Return the rows as columns, and clear them."""
        groups, size, schema = self._groups, self.count, self._schema
        self._groups, self.count = [], 0
        updates = [group.changes.updates for group in groups]
        named = {
            "partition": pa.array(_flat(each.numbers for each in updates), pa.int32()),
            "topic_id": _shared(
                _flat(each.topic_ids for each in updates), pa.string(), text_of_uuid
            ),
        }
        columns = {
            **_batch_columns(groups, schema),
            **named,
            **self._own_columns(updates, named),
            "offset": pa.array(_flat(group.offsets for group in groups), pa.int64()),
            "topic": _shared(_flat(group.changes.topics for group in groups), pa.string()),
        }
        arrays = [
            columns[field.name] if field.name in columns else pa.nulls(size, field.type)
            for field in schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _history_columns(
        self, updates: Sequence[PartitionUpdates], named: Mapping[str, pa.Array]
    ) -> dict[str, pa.Array]:
        places: dict[int, int] = {}
        frames: list[_Frame] = []
        numbers = []
        records, values = _flat(each.records for each in updates), (each.values for each in updates)
        for record, value in zip(records, chain.from_iterable(values)):
            number = places.get(id(record))
            if number is None:
                number = places[id(record)] = len(frames)
                frames.append(self._frames.get(id(record)) or self._frame(record, value))
            numbers.append(number)
        rows = pa.array(numbers, pa.int32())
        types, versions, before, after = map(list, zip(*(frame[1:] for frame in frames)))
        columns = {
            "record_type": pa.array(types, pa.string()).take(rows),
            "version": pa.array(versions, pa.int32()).take(rows),
            "is_control": pa.repeat(pa.scalar(value=False, type=pa.bool_()), len(rows)),
        }
        if self._wanted.with_payload:
            columns["payload"] = pc.binary_join_element_wise(
                pa.array(before, pa.string()).take(rows),
                named["partition"].cast(pa.string()),
                _BETWEEN,
                named["topic_id"],
                pa.array(after, pa.string()).take(rows),
                "",
            )
        return columns

    def _frame(self, record: PartitionUpdate, value: bytes | None) -> _Frame:
        """Return the frame of a record that has none yet."""
        if len(self._frames) >= _FRAMES_MAX:
            self._frames.clear()
        version = written_version(value or b"")
        payload = _payload_frame(record, version) if self._wanted.with_payload else ("", "")
        found = self._frames[id(record)] = _Frame(record, type(record).__name__, version, *payload)
        return found


_BETWEEN = ',"topicId":"'


class _Frame(NamedTuple):
    """What the rows of equal records have in common in ``history``."""

    record: PartitionUpdate
    record_type: str
    version: int
    before: str
    """The payload up to the partition's number, which ``_BETWEEN`` and the topic id follow."""
    after: str


def _payload_frame(record: PartitionUpdate, version: int) -> tuple[str, str]:
    """Return what stands in a payload before the partition's number, and behind the topic id."""
    own = f'"partitionId":{record.partition_id}{_BETWEEN}{text_of_uuid(record.topic_id)}"'
    before, _, after = json_text(record_payload(record, version)).partition(own)
    return f'{before}"partitionId":', f'"{after}'


def chosen_numbers(
    batch: FoundBatch, records: Sequence[PartitionUpdate], wanted: HistoryWanted
) -> Sequence[int] | None:
    """Return the numbers of the records that are wanted in ``history``; None for all of them."""
    header = batch.header
    types: Collection[str] = wanted.types
    if (
        not types
        and wanted.start_offset <= header.base_offset
        and header.end_offset <= wanted.end_offset
    ):
        return None
    return [
        number
        for number, record in enumerate(records)
        if wanted.start_offset <= header.base_offset + number < wanted.end_offset
        and (not types or type(record).__name__ in types)
    ]


def _batch_columns(groups: Sequence[_Group], schema: pa.Schema) -> dict[str, pa.Array]:
    """Return the columns that are alike in a batch."""
    sizes = [len(group.offsets) for group in groups]
    numbers = pa.array(_flat(map(repeat, range(len(sizes)), sizes)), pa.int32())
    by_name = zip(_OF_BATCH, zip(*(group.common for group in groups), strict=True), strict=True)
    columns = {}
    for name, values in by_name:
        if name in schema.names and name not in ("offset", "record_type"):
            kind = schema.field(name).type
            repeated = _repeated(values, kind, len(numbers))
            columns[name] = pa.array(values, kind).take(numbers) if repeated is None else repeated
    return columns


def _state_columns(
    updates: Sequence[PartitionUpdates], _named: Mapping[str, pa.Array]
) -> dict[str, pa.Array]:
    schema = arrow_schema(PARTITIONS)
    fields = PartitionState._fields
    flat = _flat(chain.from_iterable(each.states for each in updates))
    types = list(map(type, _flat(each.records for each in updates)))
    columns = {"record_type": _shared(types, pa.string(), _NAME)}
    for name, field in _OF_STATE.items():
        kind, values = schema.field(name).type, flat[fields.index(field) :: len(fields)]
        if name == "directories":
            columns[name] = _shared(values, kind, _texts)
        elif pa.types.is_list(kind):
            columns[name] = _shared(values, kind)
        else:
            columns[name] = pa.array(values, kind)
    return columns


def _flat(parts: Iterable[Iterable[Any]]) -> list[Any]:
    return list(chain.from_iterable(parts))


def _repeated(values: Sequence[Any], kind: pa.DataType, size: int) -> pa.Array | None:
    """Return a column of one value, ``size`` times; None if there are several values."""
    if not values or values.count(values[0]) != len(values):
        return None
    if pa.types.is_nested(kind):
        # ``repeat`` makes lists one by one.
        return pa.array([values[0]], kind).take(pa.repeat(pa.scalar(0, pa.int32()), size))
    return pa.repeat(pa.scalar(values[0], kind), size)


def _shared(
    values: Sequence[Any], kind: pa.DataType, convert: Callable[[Any], Any] | None = None
) -> pa.Array:
    """Return a column of few different values: each is converted once."""
    if convert is None:
        repeated = _repeated(values, kind, len(values))
        if repeated is not None:
            return repeated
    numbers: defaultdict[Any, int] = defaultdict(count().__next__)
    codes = [numbers[value] for value in values]
    different = list(numbers) if convert is None else list(map(convert, numbers))
    return pa.array(different, kind).take(pa.array(codes, pa.int32()))


def _texts(directories: tuple[bytes, ...]) -> list[str | None]:
    return [text_of_uuid(directory) for directory in directories]

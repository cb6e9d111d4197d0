"""Rows of ``partitions`` for batches that change partitions only, made as columns.

Nearly all records of a large log are changes of partitions. Their rows are not made one by one:
what a batch has in common is kept once per batch, and equal states share their lists.

Runs on Spark executors: its imports must not reach an event loop, gRPC or protobuf.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, count, repeat
from operator import attrgetter
from typing import Any

import pyarrow as pa

from audit.arrow_schema import arrow_schema
from audit.history_rows import Position, timestamp
from audit.scan import PartitionChanges, ScannedBatch
from audit.schema import CHANGE, PARTITIONS, POSITION, SET
from statemachine.payload import text_of_uuid
from statemachine.sections.partitions import PartitionState

_TOPIC_ID, _PARTITION = attrgetter("topic_id"), attrgetter("partition_id")
_OFFSET, _TIMESTAMP = attrgetter("offset"), attrgetter("timestamp")
_NAME = attrgetter("__name__")
_SCHEMA = arrow_schema(PARTITIONS)
_OF_RECORD = frozenset({"offset", "append_time", "record_type"})
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
_POSITION_NAMES = [column.name for column in (*POSITION, *CHANGE)]


class PartitionRows:
    """The rows of such batches, in log order, until ``take`` returns them."""

    def __init__(self) -> None:
        self._groups: list[PartitionChanges] = []
        self._common: list[tuple[Any, ...]] = []
        """The position columns of each batch, as of its first record."""
        self._sizes: list[int] = []
        self.count = 0

    def add(self, item: ScannedBatch, changes: PartitionChanges, committed_offset: int) -> None:
        """Add the changes of a batch; each is visible at the end of the batch."""
        position = Position(item.batch, changes.headers, committed_offset)
        end_offset = item.batch.header.end_offset
        # Offset, time and type of record are those of each record.
        self._common.append((*position.common(), end_offset, SET))
        self._groups.append(changes)
        size = len(changes.records)
        self._sizes.append(size)
        self.count += size

    def take(self) -> pa.RecordBatch:
        """Return the rows as columns, and clear them."""
        groups, common, sizes = self._groups, self._common, self._sizes
        self._groups, self._common, self._sizes, self.count = [], [], [], 0
        columns = _position_columns(groups, common, sizes)
        contents = _flat(group.contents for group in groups)
        columns["topic_id"] = _shared(map(_TOPIC_ID, contents), pa.string(), text_of_uuid)
        columns["partition"] = pa.array(list(map(_PARTITION, contents)), pa.int32())
        columns["topic"] = _shared(_flat(group.topics for group in groups), pa.string())
        fields = PartitionState._fields
        flat = _flat(chain.from_iterable(group.states for group in groups))
        by_field = {name: flat[place :: len(fields)] for place, name in enumerate(fields)}
        for name, field in _OF_STATE.items():
            kind, values = _SCHEMA.field(name).type, by_field[field]
            if name == "directories":
                columns[name] = _shared(values, kind, _texts)
            elif pa.types.is_list(kind):
                columns[name] = _shared(values, kind)
            else:
                columns[name] = pa.array(values, kind)
        arrays = [columns[name] for name in _SCHEMA.names]
        return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


def _position_columns(
    groups: Sequence[PartitionChanges], common: Sequence[tuple[Any, ...]], sizes: Sequence[int]
) -> dict[str, pa.Array]:
    """Return the columns before the state: some per record, the others alike in a batch."""
    records = _flat(group.records for group in groups)
    contents = _flat(group.contents for group in groups)
    columns = {
        "offset": pa.array(list(map(_OFFSET, records)), pa.int64()),
        "append_time": _shared(
            map(_TIMESTAMP, records), _SCHEMA.field("append_time").type, timestamp
        ),
        "record_type": _shared(map(type, contents), pa.string(), _NAME),
    }
    numbers = pa.array(_flat(map(repeat, range(len(sizes)), sizes)), pa.int32())
    for name, values in zip(_POSITION_NAMES, zip(*common, strict=True), strict=True):
        if name not in _OF_RECORD:
            columns[name] = pa.array(values, _SCHEMA.field(name).type).take(numbers)
    return columns


def _flat(parts: Iterable[Iterable[Any]]) -> list[Any]:
    return list(chain.from_iterable(parts))


def _shared(
    values: Iterable[Any], kind: pa.DataType, convert: Callable[[Any], Any] | None = None
) -> pa.Array:
    """Return a column of few different values: each is converted once."""
    numbers: defaultdict[Any, int] = defaultdict(count().__next__)
    codes = [numbers[value] for value in values]
    different = list(numbers) if convert is None else list(map(convert, numbers))
    return pa.array(different, kind).take(pa.array(codes, pa.int32()))


def _texts(directories: tuple[bytes, ...]) -> list[str | None]:
    return [text_of_uuid(directory) for directory in directories]

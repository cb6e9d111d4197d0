"""Read a planned range of the log as Arrow record batches, without Spark or Java.

This module collects rows and converts them to Arrow. ``replay`` yields what they are made of,
``history_rows`` and ``typed_rows`` make them.

Runs on Spark executors: its imports must not reach an event loop, gRPC or protobuf.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from pathlib import Path

import pyarrow as pa

from audit.arrow_schema import arrow_schema
from audit.cycle_collection import rare_collections
from audit.history_rows import (
    HistoryWanted,
    Position,
    Row,
    baseline_row,
    control_values,
    history_rows,
    record_values,
    typed_row,
)
from audit.partition_rows import PartitionRows, chosen_numbers
from audit.plan import CheckpointFile, ReadPlan
from audit.replay import Baseline, image_at, scan_range
from audit.scan import PartitionChanges, ScannedBatch
from audit.schema import HISTORY, PARTITIONS, SET, TABLES, columns
from audit.segment_file import FoundBatch
from audit.typed_rows import state_effects
from quorum.batch import Record, iterate_records, scan_batches
from quorum.control import decode_control
from snapshot.reader import CheckpointReader
from statemachine.codec import decode_record
from statemachine.payload import written_version
from statemachine.records_schema import MetadataRecord

ROWS_PER_BATCH = 8192
_BATCHES_PER_LOOK = 64
"""How often ``read_tables`` looks for tables with so many rows."""

_STATED_BY = {
    "topics": "TopicRecord",
    "partitions": "PartitionRecord",
    "configs": "ConfigRecord",
    "brokers": "RegisterBrokerRecord",
    "controllers": "RegisterControllerRecord",
    "features": "FeatureLevelRecord",
    "producer_ids": "ProducerIdsRecord",
    "client_quotas": "ClientQuotaRecord",
    "acls": "AccessControlEntryRecord",
}
"""Record type of rows that restate an entity of a typed table completely."""


class TableRows:
    """Collects the rows of the requested tables, in log order."""

    def __init__(
        self,
        plan: ReadPlan,
        tables: Sequence[str] = TABLES,
        *,
        start_offset: int = 0,
        end_offset: int | None = None,
        types: Collection[str] = (),
        names: Collection[str] = (),
    ) -> None:
        """Collect rows of [start_offset, end_offset); ``types`` limits the rows of ``history``.

        ``names`` are the columns that the caller will use, all by default; others may be null.
        """
        self._committed_offset = plan.committed_offset
        self._start_offset = start_offset
        self._end_offset = plan.end_offset if end_offset is None else end_offset
        self._types = frozenset(types)
        self.wanted = HistoryWanted(
            start_offset, self._end_offset, self._types, not names or "payload" in names
        )
        self._names = [column.name for column in columns(HISTORY)]
        self.rows: dict[str, list[Row]] = {table: [] for table in tables}
        self._grouped = {
            table: PartitionRows(table, self.wanted)
            for table in (HISTORY, PARTITIONS)
            if table in self.rows
        }
        self._before: dict[str, list[int]] = {table: [] for table in self._grouped}
        """How many of the grouped rows of a table precede each of its other rows."""

    def add(self, item: Baseline | ScannedBatch) -> None:
        """Add the next item that ``scan_range`` yields."""
        if isinstance(item, Baseline):
            self._add_baseline(item)
            return
        if item.partitions is not None:
            self._add_grouped(item.batch, item.partitions)
            return
        history = self.rows.get(HISTORY)
        if history is not None:
            history += history_rows(item, self._committed_offset, self.wanted)
        position: Position | None = None
        batch = None
        for change in item.visible:
            rows = self.rows.get(change.effect.table)
            if rows is None or not self._start_offset < change.effective_offset <= self._end_offset:
                continue
            if position is None or change.batch is not batch:
                batch = change.batch
                position = Position(batch, change.headers, self._committed_offset)
            rows.append(typed_row(change, position))

    def _add_grouped(self, batch: FoundBatch, changes: PartitionChanges) -> None:
        for table, grouped in self._grouped.items():
            chosen = None
            if table == HISTORY:
                chosen = chosen_numbers(batch, changes.updates.records, self.wanted)
                if chosen is not None and not chosen:
                    continue
            elif not self._start_offset < batch.header.end_offset <= self._end_offset:
                continue
            self._place_others(table)
            grouped.add(batch, changes, self._committed_offset, chosen)

    def _place_others(self, table: str) -> list[int]:
        """Place the other rows of a table behind the grouped ones so far; return the places."""
        before = self._before[table]
        before += [self._grouped[table].count] * (len(self.rows[table]) - len(before))
        return before

    def _add_baseline(self, baseline: Baseline) -> None:
        image, snapshot_id = baseline.image, baseline.snapshot_id
        for table, rows in self.rows.items():
            if table == HISTORY:
                if baseline.checkpoint is not None:
                    rows += _checkpoint_rows(baseline, baseline.checkpoint, self._types)
                continue
            time = image.provenance.timestamp_ms
            end_offset = max(snapshot_id.offset, 1)
            rows += [
                baseline_row(
                    snapshot_id, number, _STATED_BY[table], time, end_offset, SET, *effect.values
                )
                for number, effect in enumerate(state_effects(image, table))
            ]

    def waiting(self, table: str) -> int:
        """Return how many rows of a table are collected."""
        grouped = self._grouped.get(table)
        return len(self.rows[table]) + (0 if grouped is None else grouped.count)

    def drop_behind(self, end_offset: int) -> None:
        """Drop the collected history rows of batches that end above ``end_offset``."""
        before = self._place_others(HISTORY)
        end_column = self._names.index("batch_end_offset")
        rows = [row for row in self.rows[HISTORY] if row[end_column] <= end_offset]
        self.rows[HISTORY] = rows
        del before[len(rows) :]
        self._grouped[HISTORY].drop_behind(end_offset)

    def take(
        self, table: str, *, at_least: int = 1, names: Sequence[str] = ()
    ) -> pa.RecordBatch | None:
        """Return and clear the rows of a table; None if there are fewer than ``at_least``.

        ``names`` selects columns, in their order; all by default.
        """
        rows = self.rows[table]
        grouped = self._grouped.get(table)
        count = 0 if grouped is None else grouped.count
        if self.waiting(table) < max(at_least, 1):
            return None
        before = [] if grouped is None else self._place_others(table)
        self.rows[table] = []
        if grouped is None or not count:
            before.clear()
            return to_record_batch(table, rows, names)
        found = grouped.take()
        if rows:
            found = _merged(found, to_record_batch(table, rows), before)
        before.clear()
        return found.select(list(names)) if names else found


def _merged(
    grouped: pa.RecordBatch, others: pa.RecordBatch, before: Sequence[int]
) -> pa.RecordBatch:
    """Return the rows of both.

    ``before`` tells how many of the grouped rows precede each of the others; it never falls.
    """
    parts = []
    done = placed = 0
    # Those derived from one broker event follow one another, so the parts are few.
    for count, alike in groupby(before):
        size = len(list(alike))
        parts += [grouped.slice(done, count - done), others.slice(placed, size)]
        done, placed = count, placed + size
    parts.append(grouped.slice(done))
    return pa.concat_batches(parts)


def _checkpoint_rows(
    baseline: Baseline, checkpoint: CheckpointFile, types: Collection[str]
) -> Iterator[Row]:
    """Yield a row for each record of the checkpoint, of these types; of all, if there are none."""
    time = baseline.image.provenance.timestamp_ms
    reader = CheckpointReader(Path(checkpoint.path))
    digest = reader.head().log_digest.hex() or None
    number = 0
    for data in reader.batches():
        for header in scan_batches(data):
            for record in iterate_records(data, header):
                if header.is_control:
                    control = decode_control(record)
                    name = type(control).__name__
                    wanted = not types or name in types
                    values = control_values(control, digest) if wanted else ()
                else:
                    content = decode_record(record.value or b"")
                    name = type(content).__name__
                    wanted = not types or name in types
                    values = _record_values(baseline, record, content, digest) if wanted else ()
                if wanted:
                    yield baseline_row(baseline.snapshot_id, number, name, time, *values)
                number += 1


def _record_values(
    baseline: Baseline, record: Record, content: MetadataRecord, digest: str | None
) -> Row:
    version = written_version(record.value or b"")
    topic_id = getattr(content, "topic_id", None)
    topic = None if topic_id is None else baseline.image.topics.name_of(topic_id)
    return record_values(content, version, topic, digest)


def to_record_batch(table: str, rows: Sequence[Row], names: Sequence[str] = ()) -> pa.RecordBatch:
    """Convert rows of a table to one Arrow record batch, of the columns ``names`` if given."""
    schema = arrow_schema(table)
    columns_of = dict(zip(schema.names, zip(*rows), strict=True))
    if names:
        schema = pa.schema([schema.field(name) for name in names])
    arrays = [pa.array(columns_of[field.name], type=field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def read_table(
    plan: ReadPlan,
    table: str,
    start_offset: int | None = None,
    end_offset: int | None = None,
    *,
    types: Collection[str] = (),
    names: Sequence[str] = (),
) -> Iterator[pa.RecordBatch]:
    """Yield one table's rows of [start_offset, end_offset), by default of the whole plan.

    ``types`` limits ``history`` to these record types, ``names`` selects columns. If all these
    types stand for themselves (``HistoryWanted.needs_state``), nothing before the range is read.

    Raises:
        LogDamagedError, CorruptBatchError, SnapshotCorruptError, StorageError: As
            ``scan_range``.
    """
    start = plan.first_offset if start_offset is None else start_offset
    end = plan.end_offset if end_offset is None else min(end_offset, plan.end_offset)
    collected = TableRows(
        plan, [table], start_offset=start, end_offset=end, types=types, names=names
    )
    with_state = needs_state(table, types)
    with_data = table != HISTORY or collected.wanted.needs_data
    items = scan_range(
        plan, start, end, with_state=with_state, with_data=with_data, grouped=True,
        partitions_of=None if needs_partitions(table, types) else (),
    )  # fmt: skip
    for item in items:
        collected.add(item)
        full = collected.take(table, at_least=ROWS_PER_BATCH, names=names)
        if full is not None:
            yield full
    rest = collected.take(table, names=names)
    if rest is not None:
        yield rest


def read_tables(
    plan: ReadPlan,
    tables: Sequence[str],
    start_offset: int | None = None,
    end_offset: int | None = None,
    *,
    topic: str | None = None,
) -> dict[str, pa.Table]:
    """Return the rows of several tables of a plan, replayed once, in log order.

    All rows, or those of [start_offset, end_offset), both of them ends of batches. ``topic``: of
    ``partitions`` only that topic's rows are needed; there may be others, and ``change_index``
    counts its own derived changes. Not for ``history``.

    Raises:
        LogDamagedError, CorruptBatchError, SnapshotCorruptError, StorageError: As
            ``scan_range``.
    """
    found: dict[str, list[pa.RecordBatch]] = {table: [] for table in tables}
    if not found:
        return {}
    start = plan.first_offset if start_offset is None else start_offset
    end = plan.end_offset if end_offset is None else end_offset
    collected = TableRows(plan, tables, start_offset=start, end_offset=end)

    def take(at_least: int) -> None:
        for table, batches in found.items():
            batch = collected.take(table, at_least=at_least)
            if batch is not None:
                batches.append(batch)

    partitions_of: Collection[str] | None = None
    if HISTORY not in found and (topic is not None or PARTITIONS not in found):
        partitions_of = () if topic is None or PARTITIONS not in found else (topic,)
    items = scan_range(plan, start, end, partitions_of=partitions_of, grouped=True)
    with rare_collections():
        for number, item in enumerate(items):
            collected.add(item)
            if not number % _BATCHES_PER_LOOK:
                take(ROWS_PER_BATCH)
        take(1)
    return {
        table: pa.Table.from_batches(batches, arrow_schema(table))
        for table, batches in found.items()
    }


def needs_state(table: str, types: Collection[str] = ()) -> bool:
    """Whether rows of a table, of these types, depend on records before them."""
    return table != HISTORY or HistoryWanted(0, 0, frozenset(types)).needs_state


def needs_partitions(table: str, types: Collection[str] = ()) -> bool:
    """Whether rows of a table, of these types, depend on the states of partitions before them."""
    if table != HISTORY:
        return table == PARTITIONS
    return HistoryWanted(0, 0, frozenset(types)).needs_partitions


def read_state(
    plan: ReadPlan, table: str, as_of: int, names: Sequence[str] = ()
) -> Iterator[pa.RecordBatch]:
    """Yield every entity of one typed table as of an offset, as baseline rows.

    Raises:
        AuditError: The state at that offset is not known from this source.
        LogDamagedError, CorruptBatchError, SnapshotCorruptError, StorageError: As
            ``scan_range``.
    """
    collected = TableRows(plan, [table])
    collected.add(image_at(plan, as_of))
    rest = collected.take(table, names=names)
    if rest is not None:
        yield rest

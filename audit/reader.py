"""Read a planned range of the log as Arrow record batches, without Spark or Java.

This module defines the order (baseline, then batches), the start of the replay, and the conversion
to Arrow. ``history_rows`` and ``typed_rows`` make the rows.

Runs on Spark executors: its imports must not reach an event loop, gRPC or protobuf.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from audit.errors import AuditError
from audit.history_rows import (
    Position,
    Row,
    baseline_row,
    control_values,
    history_rows,
    record_values,
    typed_row,
)
from audit.plan import CheckpointFile, ReadPlan
from audit.scan import Scan, ScannedBatch, load_state
from audit.schema import HISTORY, SET, TABLES, arrow_schema, columns
from audit.segment_file import FoundBatch, read_segment
from audit.typed_rows import state_effects
from quorum.batch import iterate_records, scan_batches
from quorum.control import decode_control
from quorum.types import SnapshotId
from snapshot.reader import CheckpointReader
from statemachine.codec import decode_record
from statemachine.image import EMPTY_IMAGE, MetadataImage
from statemachine.payload import written_version

ROWS_PER_BATCH = 8192

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


@dataclass(frozen=True, slots=True)
class Baseline:
    """The state below an offset, in place of the records that led to it."""

    snapshot_id: SnapshotId
    image: MetadataImage
    checkpoint: CheckpointFile | None = None


def scan_range(
    plan: ReadPlan, start_offset: int, end_offset: int
) -> Iterator[Baseline | ScannedBatch]:
    """Yield everything in [start_offset, end_offset): the baseline if it is in range, then batches.

    Raises:
        LogDamagedError, CorruptBatchError, SnapshotCorruptError: A file is damaged or holds
            records unknown to this release; the message names file, position and cause.
        StorageError: A file cannot be read.
    """
    baseline = plan.baseline
    if baseline is not None and start_offset < baseline.end_offset:
        scan = Scan(None)
        middle = min(baseline.end_offset, end_offset)
        for batch in _batches(plan, start_offset, middle):
            yield scan.take(batch)
        if baseline.end_offset > end_offset:
            return
        scan = Scan(load_state(baseline))
        yield Baseline(baseline.snapshot_id, scan.image(), baseline)
        start_offset = baseline.end_offset
    else:
        scan = _scan_to(plan, start_offset)
    for batch in _batches(plan, start_offset, end_offset):
        yield scan.take(batch)


def image_at(plan: ReadPlan, offset: int) -> Baseline:
    """Return the state as of ``offset``: every change that is visible below it.

    Raises:
        AuditError: The state at that offset is not known from this source.
        LogDamagedError, CorruptBatchError, SnapshotCorruptError, StorageError: As
            ``scan_range``.
    """
    lowest = plan.baseline.end_offset if plan.baseline is not None else plan.start_offset
    if not lowest <= offset <= plan.end_offset:
        raise AuditError(
            f"{plan.source}: the state as of offset {offset} is not known, only the states as of "
            f"offsets {lowest} to {plan.end_offset}"
        )
    image = _scan_to(plan, offset).image()
    provenance = image.provenance
    return Baseline(SnapshotId(offset, provenance.epoch), image)


def _scan_to(plan: ReadPlan, offset: int) -> Scan:
    """Replay up to ``offset`` from the newest checkpoint below it."""
    checkpoint = plan.replay_start(offset)
    if checkpoint is not None:
        scan, begin = Scan(load_state(checkpoint)), checkpoint.end_offset
    elif plan.start_offset == 0:
        scan, begin = Scan(EMPTY_IMAGE), 0
    else:
        return Scan(None)
    for batch in _batches(plan, begin, offset):
        if batch.header.end_offset <= offset:
            scan.take(batch, observe=False)
    return scan


def _batches(plan: ReadPlan, start_offset: int, end_offset: int) -> Iterator[FoundBatch]:
    for segment in plan.segments:
        start = max(start_offset, segment.start_offset)
        end = min(end_offset, segment.end_offset)
        if start < end:
            yield from read_segment(replace(segment, start_offset=start, end_offset=end))


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
    ) -> None:
        """Collect rows of [start_offset, end_offset); ``types`` limits the rows of ``history``."""
        self._committed_offset = plan.committed_offset
        self._start_offset = start_offset
        self._end_offset = plan.end_offset if end_offset is None else end_offset
        self._types = frozenset(types)
        self._names = [column.name for column in columns(HISTORY)]
        self._type_column = self._names.index("record_type")
        self.rows: dict[str, list[Row]] = {table: [] for table in tables}

    def add(self, item: Baseline | ScannedBatch) -> None:
        """Add the next item that ``scan_range`` yields."""
        if isinstance(item, Baseline):
            self._add_baseline(item)
            return
        history = self.rows.get(HISTORY)
        if history is not None:
            start, end, types = self._start_offset, self._end_offset, self._types
            history += [
                row
                for row in history_rows(item, self._committed_offset)
                if start <= row[0] < end and (not types or row[self._type_column] in types)
            ]
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

    def _add_baseline(self, baseline: Baseline) -> None:
        image, snapshot_id = baseline.image, baseline.snapshot_id
        for table, rows in self.rows.items():
            if table == HISTORY:
                if baseline.checkpoint is not None:
                    found = _checkpoint_rows(baseline, baseline.checkpoint)
                    rows += [
                        row
                        for row in found
                        if not self._types or row[self._type_column] in self._types
                    ]
                continue
            time = image.provenance.timestamp_ms
            end_offset = max(snapshot_id.offset, 1)
            rows += [
                baseline_row(
                    snapshot_id, number, _STATED_BY[table], time, end_offset, SET, *effect.values
                )
                for number, effect in enumerate(state_effects(image, table))
            ]

    def drop_behind(self, end_offset: int) -> None:
        """Drop the collected history rows of batches that end above ``end_offset``."""
        end_column = self._names.index("batch_end_offset")
        self.rows[HISTORY] = [row for row in self.rows[HISTORY] if row[end_column] <= end_offset]

    def take(self, table: str, *, at_least: int = 1) -> pa.RecordBatch | None:
        """Return and clear the rows of a table; None if there are fewer than ``at_least``."""
        rows = self.rows[table]
        if len(rows) < max(at_least, 1):
            return None
        self.rows[table] = []
        return to_record_batch(table, rows)


def _checkpoint_rows(baseline: Baseline, checkpoint: CheckpointFile) -> Iterator[Row]:
    time = baseline.image.provenance.timestamp_ms
    reader = CheckpointReader(Path(checkpoint.path))
    digest = reader.head().log_digest.hex() or None
    number = 0
    for data in reader.batches():
        for header in scan_batches(data):
            for record in iterate_records(data, header):
                if header.is_control:
                    control = decode_control(record)
                    name, values = type(control).__name__, control_values(control, digest)
                else:
                    content = decode_record(record.value or b"")
                    version = written_version(record.value or b"")
                    topic_id = getattr(content, "topic_id", None)
                    topic = None if topic_id is None else baseline.image.topics.name_of(topic_id)
                    name = type(content).__name__
                    values = record_values(content, version, topic, digest)
                yield baseline_row(baseline.snapshot_id, number, name, time, *values)
                number += 1


def to_record_batch(table: str, rows: Sequence[Row]) -> pa.RecordBatch:
    """Convert rows of a table to one Arrow record batch."""
    schema = arrow_schema(table)
    arrays = [
        pa.array(values, type=field.type) for values, field in zip(zip(*rows), schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def read_table(
    plan: ReadPlan,
    table: str,
    start_offset: int | None = None,
    end_offset: int | None = None,
    *,
    types: Collection[str] = (),
) -> Iterator[pa.RecordBatch]:
    """Yield one table's rows of [start_offset, end_offset), by default of the whole plan.

    ``types`` limits ``history`` to these record types.

    Raises:
        LogDamagedError, CorruptBatchError, SnapshotCorruptError, StorageError: As
            ``scan_range``.
    """
    start = plan.first_offset if start_offset is None else start_offset
    end = plan.end_offset if end_offset is None else min(end_offset, plan.end_offset)
    collected = TableRows(plan, [table], start_offset=start, end_offset=end, types=types)
    for item in scan_range(plan, start, end):
        collected.add(item)
        full = collected.take(table, at_least=ROWS_PER_BATCH)
        if full is not None:
            yield full
    rest = collected.take(table)
    if rest is not None:
        yield rest


def read_state(plan: ReadPlan, table: str, as_of: int) -> Iterator[pa.RecordBatch]:
    """Yield every entity of one typed table as of an offset, as baseline rows.

    Raises:
        AuditError: The state at that offset is not known from this source.
        LogDamagedError, CorruptBatchError, SnapshotCorruptError, StorageError: As
            ``scan_range``.
    """
    collected = TableRows(plan, [table])
    collected.add(image_at(plan, as_of))
    rest = collected.take(table)
    if rest is not None:
        yield rest

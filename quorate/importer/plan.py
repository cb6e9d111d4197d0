"""What an import copies: the whole source proven and replayed first, then step by step.

Planning reads everything: checksums, record formats, and a replay with the state machine's own
code, which also gives the digest that the cluster must have in the end. Nothing is written
before that. Whether a transaction takes effect is known only once all of the log was seen.

A step is one batch of the source with at least one record to copy. Steps are contiguous: each
begins where the one before ended, so control batches, markers and aborted records in between
belong to the step behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from quorate.client.limits import IMPORT_BYTES_MAX
from quorate.features import level_problem
from quorate.importer.errors import ImportRefusedError, SourceDamagedError
from quorate.importer.source import Source, SourceBatch
from quorate.importer.transactions import TransactionScan
from quorum.batch import record_values
from quorum.errors import RecordCodecError, ReplayError, UnknownRecordError
from statemachine import transactions
from statemachine.codec import decode_record
from statemachine.delta import ImageDelta
from statemachine.dump import state_digest
from statemachine.image import EMPTY_IMAGE, MetadataImage
from statemachine.import_state import NO_CHECKPOINT, ImportState, SourcePosition
from statemachine.loading import load_checkpoint
from statemachine.records import OWN_API_KEY_MIN, MetadataRecord

CHECKPOINT_STEP_BYTES = 512 << 10
"""A checkpoint need not be applied at once: its batches are copied in pieces of about this size."""
CHECKPOINT_STEP_RECORDS = 4_096
BATCH_RECORDS_MAX = 20_000
"""Twice what Kafka's controllers write: a leader busy with one command for seconds is deposed."""
_VALUE_OVERHEAD_BYTES = 6
_COMMAND_OVERHEAD_BYTES = 4096

OnOffset = Callable[[int], None]
"""Called with the progress of planning, as an offset of the log."""


class Step(NamedTuple):
    """The next range of the source and the encoded records to copy of it."""

    begin: SourcePosition
    end: SourcePosition
    values: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """A source that was proven from its first byte to its last."""

    source: Source
    checkpoint_offset: int
    """Of the checkpoint that the copy starts from, ``NO_CHECKPOINT`` for none."""
    start: SourcePosition
    """Where the copy begins or continues."""
    image: MetadataImage
    """What a replay of the source gives."""
    digest: bytes
    """Its state digest."""
    scan: TransactionScan

    @property
    def end(self) -> SourcePosition:
        """Where the source ends."""
        return SourcePosition(is_in_log=True, offset=self.source.end_offset)

    def steps(self, position: SourcePosition) -> Iterator[Step]:
        """What is to be copied from ``position`` on, in order.

        Raises:
            ImportRefusedError: No step of this source begins there: it is not the one that was
                copied from before.
            StorageError: The source was damaged or taken away since it was planned.
        """
        if not position.is_in_log:
            for step in self._checkpoint_steps():
                if step.begin == position:
                    yield step
                    position = step.end
            if not position.is_in_log:
                raise self._lost(position)
        yield from self._log_steps(position)

    def _checkpoint_steps(self) -> Iterator[Step]:
        file = self.source.checkpoint(self.checkpoint_offset)
        begin = SourcePosition(is_in_log=False, offset=0)
        passed = 0
        waiting: tuple[bytes, ...] = ()
        for batch in self.source.checkpoint_batches(file):
            if batch.header.is_control:
                passed += batch.header.record_count
                continue
            for chunk in _chunks(_values(batch)):
                if waiting:
                    end = SourcePosition(is_in_log=False, offset=passed)
                    yield Step(begin, end, waiting)
                    begin = end
                waiting = chunk
                passed += len(chunk)
        # The last piece ends where the log continues, so a missing piece is noticed.
        yield Step(begin, SourcePosition(is_in_log=True, offset=self.checkpoint_offset), waiting)

    def _log_steps(self, position: SourcePosition) -> Iterator[Step]:
        begin = position
        is_first = True
        for batch in self.source.log_batches(position.offset):
            if is_first and batch.header.base_offset != position.offset:
                raise self._lost(position)
            is_first = False
            if batch.header.is_control:
                continue
            base = batch.header.base_offset
            values = tuple(
                value
                for number, value in enumerate(_values(batch))
                if self.scan.takes_effect(base + number, _decoded(batch, number, value))
            )
            if values:
                end = SourcePosition(is_in_log=True, offset=batch.header.end_offset)
                yield Step(begin, end, values)
                begin = end

    def _lost(self, position: SourcePosition) -> ImportRefusedError:
        return ImportRefusedError(
            f"{self.source.directory}: no batch begins at {position.text()}, where the import "
            "stopped: this is not the source it began with"
        )


def plan_import(
    source: Source, state: ImportState | None = None, *, on_offset: OnOffset | None = None
) -> ImportPlan:
    """Verify and replay a source, for an import that begins or that continues from ``state``.

    Raises:
        CorruptBatchError, SnapshotCorruptError, SourceDamagedError: The source is not intact;
            names file, position and cause.
        ImportRefusedError: The source cannot be imported, or not from there on.
        StorageError: A file cannot be read.
    """
    checkpoint = source.starting_checkpoint()
    base = checkpoint
    start = SourcePosition(is_in_log=checkpoint == NO_CHECKPOINT, offset=0)
    if state is not None:
        checkpoint, start = state.checkpoint_offset, state.position
        if not start.is_in_log:
            base = checkpoint
        _check_reachable(source, start)
    delta = ImageDelta(EMPTY_IMAGE if base == NO_CHECKPOINT else _load(source, base))
    scan = TransactionScan()
    for batch in source.log_batches(source.plan.start_offset):
        _take(batch, delta, scan)
        if on_offset is not None:
            on_offset(batch.header.end_offset)
    scan.finish(source.end_offset)
    if delta.transaction is not None:
        transactions.abort(delta)
    image = delta.finish()
    for name in sorted(image.features.levels):
        problem = level_problem(name, image.features.levels[name])
        if problem:
            raise ImportRefusedError(f"{source.directory}: {problem}")
    return ImportPlan(source, checkpoint, start, image, state_digest(image), scan)


def _check_reachable(source: Source, start: SourcePosition) -> None:
    low = source.plan.start_offset
    if start.is_in_log and not low <= start.offset <= source.end_offset:
        raise ImportRefusedError(
            f"{source.directory}: the import stopped at offset {start.offset}, the source's log "
            f"holds {low} to {source.end_offset}"
        )


def _load(source: Source, checkpoint_offset: int) -> MetadataImage:
    file = source.checkpoint(checkpoint_offset)

    def contents() -> Iterator[bytes]:
        for batch in source.checkpoint_batches(file):
            if not batch.header.is_control:
                for number, value in enumerate(_values(batch)):
                    _decoded(batch, number, value)
            start = batch.header.position
            yield batch.data[start : start + batch.header.size]

    try:
        return load_checkpoint(file.snapshot_id, contents()).image
    except ReplayError as error:
        raise SourceDamagedError(str(error), path=file.path) from error


def _take(batch: SourceBatch, delta: ImageDelta, scan: TransactionScan) -> None:
    """Read one batch; replay it unless the checkpoint contains it."""
    header = batch.header
    is_new = header.end_offset > delta.end_offset
    if header.is_control:
        if is_new:
            delta.skip_batch(header)
        return
    if header.producer_id >= 0:
        raise ImportRefusedError(
            f"{batch.path}: the batch at position {batch.position} was written by a producer, "
            "which no Kafka controller does; copy a directory of Quorate's own instead"
        )
    values = _values(batch)
    records = [_decoded(batch, number, value) for number, value in enumerate(values)]
    for number, record in enumerate(records):
        scan.take(header.base_offset + number, record)
    _check_size(batch, values)
    if is_new:
        try:
            delta.replay_batch(header, records)
        except ReplayError as error:
            raise batch.damage(str(error)) from error


def _check_size(batch: SourceBatch, values: list[bytes]) -> None:
    """A batch becomes one command, which has bounds."""
    size = sum(len(value) + _VALUE_OVERHEAD_BYTES for value in values)
    size_max = IMPORT_BYTES_MAX - _COMMAND_OVERHEAD_BYTES
    if size > size_max or len(values) > BATCH_RECORDS_MAX:
        raise ImportRefusedError(
            f"{batch.path}: the batch at position {batch.position} has {len(values)} records of "
            f"{size} bytes; one command takes {BATCH_RECORDS_MAX} of {size_max}"
        )


def _values(batch: SourceBatch) -> list[bytes]:
    """The encoded records of a data batch."""
    base = batch.position - batch.header.position
    return record_values(batch.data, batch.header, path=batch.path, base_position=base)


def _decoded(batch: SourceBatch, number: int, value: bytes) -> MetadataRecord:
    offset = batch.header.base_offset + number
    try:
        record = decode_record(value)
    except (RecordCodecError, UnknownRecordError) as error:
        raise batch.damage(f"offset {offset}: {error}") from error
    if record.API_KEY >= OWN_API_KEY_MIN:
        raise ImportRefusedError(
            f"{batch.path}: offset {offset} holds a {type(record).__name__}, which no Kafka "
            "controller writes; copy a directory of Quorate's own instead"
        )
    return record


def _chunks(values: list[bytes]) -> Iterator[tuple[bytes, ...]]:
    """Yield the values in order, in pieces of at most the size limit."""
    chunk: list[bytes] = []
    size = 0
    for value in values:
        chunk.append(value)
        size += len(value) + _VALUE_OVERHEAD_BYTES
        if size >= CHECKPOINT_STEP_BYTES or len(chunk) == CHECKPOINT_STEP_RECORDS:
            yield tuple(chunk)
            chunk, size = [], 0
    if chunk:
        yield tuple(chunk)

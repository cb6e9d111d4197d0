"""Following a growing log with Spark Structured Streaming.

A stream's position is ``{"offset": N, "epoch": E, "epochs": [[epoch, start offset], ...]}``:
everything below N was read, E is the epoch of the record before it (0 at the beginning), and the
list says where the newest epochs below N began. When the log no longer has that record, the
query fails with LOG_TRUNCATED and the first divergent offset (requirements 320.3 to 320.6);
when the log start has moved past the position, it fails too, instead of leaving a gap.
Positions of releases that did not keep the list are taken as well: then that offset is a bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from audit.errors import AuditError, LogTruncatedError
from audit.lineage import epochs_below, find_divergence
from audit.plan import ReadPlan
from audit.segment_file import read_segment
from audit.source_reader import OffsetRange, Question, read_partition
from quorum.types import EpochStart


class PlannedRange(OffsetRange):
    """A range with the plan to read it by, as a stream plans anew for every micro-batch."""

    def __init__(self, plan: ReadPlan, start: int, end: int) -> None:
        super().__init__(start, end)
        self.plan = plan


class HistoryStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The stream over one directory. Only committed records are ever given out."""

    def __init__(
        self, path: str, question: Question, start_offset: int | None, offsets_max: int | None
    ) -> None:
        """Begin at ``start_offset``; a micro-batch takes about ``offsets_max`` offsets."""
        self._path = path
        self._question = question
        self._start_offset = start_offset
        self._offsets_max = offsets_max
        self._target: int | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Where a new query begins."""
        offset = self._start_offset or 0
        if offset == 0:
            return {"offset": 0, "epoch": 0, "epochs": []}
        plan = self._plan()
        return _position(plan, offset, plan.epoch_at(offset - 1), ())

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """As many offsets per micro-batch as option ``maxOffsetsPerTrigger`` says."""
        return ReadAllAvailable() if self._offsets_max is None else ReadMaxRows(self._offsets_max)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Remember what is there now: nothing that comes later is read."""
        self._target = self._plan().end_offset

    def latestOffset(  # noqa: N802 - Spark's name
        self, start: dict[str, Any], limit: ReadLimit
    ) -> dict[str, Any]:
        """The end of the next micro-batch; ``start`` itself when there is nothing new.

        Raises:
            LogTruncatedError: The log no longer has the record before ``start``.
            AuditError: The log start has moved past ``start``.
        """
        plan = self._plan()
        known = _check(plan, start)
        end = plan.end_offset if self._target is None else min(plan.end_offset, self._target)
        if end <= start["offset"]:
            return start
        if isinstance(limit, ReadMaxRows):
            end = _batch_end(plan, start["offset"] + limit.max_rows, end)
        return _position(plan, end, plan.last_epoch(end), known)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """One task per file in the range."""
        plan = self._plan()
        _check(plan, start)
        _check(plan, end)
        pairs = plan.ranges(start["offset"], end["offset"])
        return [PlannedRange(plan, *pair) for pair in pairs]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        if not isinstance(partition, PlannedRange):
            raise TypeError(f"not one of our partitions: {partition!r}")
        yield from read_partition(partition.plan, self._question, partition)

    def _plan(self) -> ReadPlan:
        # Imported here, as executors unpickle this class and have no modules for looking around.
        from audit.directory import plan_source

        return plan_source(Path(self._path))


def _position(
    plan: ReadPlan, offset: int, epoch: int, known: Sequence[EpochStart]
) -> dict[str, Any]:
    epochs = epochs_below(known, plan.epochs, offset)
    return {"offset": offset, "epoch": epoch, "epochs": [[e.epoch, e.start_offset] for e in epochs]}


def _check(plan: ReadPlan, position: dict[str, Any]) -> tuple[EpochStart, ...]:
    """Pass only a position of this log; returns the epochs that were read before it."""
    known = tuple(EpochStart(*entry) for entry in position.get("epochs", ()))
    check_position(plan, position["offset"], position["epoch"], known)
    return known


def check_position(
    plan: ReadPlan, offset: int, epoch: int, known: Sequence[EpochStart] = ()
) -> None:
    """Prove that a position read up to before still is one of this log.

    ``known`` are the epochs of what was read below ``offset``, as far as they were kept.

    Raises:
        LogTruncatedError: The log no longer has the record before ``offset``.
        AuditError: The log start has moved past it, so that records were missed.
    """
    if offset == 0:
        return
    if offset < plan.start_offset:
        raise AuditError(
            f"{plan.source}: offsets {offset} to {plan.start_offset} left the log before they "
            "were read; begin a new query"
        )
    newer = next((entry for entry in plan.epochs if entry.epoch > epoch), None)
    is_behind_newer = newer is not None and newer.start_offset < offset
    is_older_here = offset <= plan.end_offset and 0 < plan.last_epoch(offset) < epoch
    if not is_behind_newer and not is_older_here:
        return
    read = known or (EpochStart(epoch, offset - 1),)
    found = find_divergence(read, offset, plan.epochs, plan.end_offset)
    raise LogTruncatedError(
        f"{plan.source} no longer contains what was read up to offset {offset}",
        offset=found.offset,
        epoch=epoch,
        is_exact=found.is_exact,
    )


def _batch_end(plan: ReadPlan, wanted: int, end_offset: int) -> int:
    """End of the batch that holds the offset before ``wanted``, at most ``end_offset``."""
    baseline = plan.baseline
    if baseline is not None and wanted < baseline.end_offset:
        wanted = baseline.end_offset
    for segment in plan.segments:
        if segment.end_offset >= wanted:
            for batch in read_segment(segment):
                if batch.header.end_offset >= wanted:
                    return min(batch.header.end_offset, end_offset)
    return end_offset

"""Following a growing log with Spark Structured Streaming.

A stream's position is ``{"offset": N, "epoch": E}``: everything below N was read, and E is the
epoch of the record before it (0 at the beginning). When the log no longer has that record, the
query fails with LOG_TRUNCATED and the first divergent offset (requirements 320.3 to 320.6);
when the log start has moved past the position, it fails too, instead of leaving a gap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from audit.errors import AuditError, LogTruncatedError
from audit.plan import ReadPlan
from audit.segment_file import read_segment
from audit.source_reader import OffsetRange, Question, read_partition


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

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Where a new query begins."""
        offset = self._start_offset or 0
        return {"offset": offset, "epoch": self._plan().epoch_at(offset - 1) if offset else 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """As many offsets per micro-batch as option ``maxOffsetsPerTrigger`` says."""
        return ReadAllAvailable() if self._offsets_max is None else ReadMaxRows(self._offsets_max)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Remember what is there now: nothing that comes later is read."""
        self._target = self._plan().end_offset

    def latestOffset(  # noqa: N802 - Spark's name
        self, start: dict[str, int], limit: ReadLimit
    ) -> dict[str, int]:
        """The end of the next micro-batch; ``start`` itself when there is nothing new.

        Raises:
            LogTruncatedError: The log no longer has the record before ``start``.
            AuditError: The log start has moved past ``start``.
        """
        plan = self._plan()
        check_position(plan, start["offset"], start["epoch"])
        end = plan.end_offset if self._target is None else min(plan.end_offset, self._target)
        if end <= start["offset"]:
            return start
        if isinstance(limit, ReadMaxRows):
            end = _batch_end(plan, start["offset"] + limit.max_rows, end)
        return {"offset": end, "epoch": plan.last_epoch(end)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """One task per file in the range."""
        plan = self._plan()
        check_position(plan, start["offset"], start["epoch"])
        check_position(plan, end["offset"], end["epoch"])
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


def check_position(plan: ReadPlan, offset: int, epoch: int) -> None:
    """Prove that a position read up to before still is one of this log.

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
    if newer is not None and newer.start_offset < offset:
        divergent = newer.start_offset
    elif offset <= plan.end_offset and 0 < plan.last_epoch(offset) < epoch:
        # Where the records of that epoch began is not in the position: at the latest here.
        divergent = offset - 1
    else:
        return
    raise LogTruncatedError(
        f"{plan.source} no longer contains what was read up to offset {offset}",
        offset=divergent,
        epoch=epoch,
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

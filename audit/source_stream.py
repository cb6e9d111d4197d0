"""Follow a growing log with Spark Structured Streaming.

A stream's position is a ``LogPosition`` as JSON, the same that consumers and watches store:
``{"offset": N, "epoch": E, "epochs": [[epoch, start offset, digest], ...], "digest": D,
"incarnation": I}``. Everything below N was read, E is the epoch of the record before N (0 at the
beginning), D the log digest below N, and the list holds the starts of the newest epochs below N. If
the log no longer has what was read, the query fails with LOG_TRUNCATED and the first divergent
offset (requirements 320.3 to 320.6).
If the log start has moved past the position, the query fails too, instead of leaving a gap.
Positions of releases without list or digest are accepted; the offset is then a bound.
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

from audit.plan import ReadPlan
from audit.position import check_position, position_at
from audit.segment_file import read_segment
from audit.source_reader import OffsetRange, Question, read_partition
from quorum.log_position import LogPosition
from quorum.types import EpochStart


class PlannedRange(OffsetRange):
    """A range with its plan, because a stream plans again for every micro-batch."""

    def __init__(self, plan: ReadPlan, start: int, end: int) -> None:
        super().__init__(start, end)
        self.plan = plan


class HistoryStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The stream over one directory. It returns committed records only."""

    def __init__(
        self, path: str, question: Question, start_offset: int | None, offsets_max: int | None
    ) -> None:
        """Begin at ``start_offset``; a micro-batch has about ``offsets_max`` offsets."""
        self._path = path
        self._question = question
        self._start_offset = start_offset
        self._offsets_max = offsets_max
        self._target: int | None = None
        self._verified: tuple[Sequence[EpochStart], bytes] | None = None
        """Epochs and incarnation of the log in which a position was last compared by digest."""

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return the position of a new query."""
        offset = self._start_offset or 0
        if offset == 0:
            return LogPosition(0, 0).to_dict()
        return position_at(self._plan(), offset).to_dict()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return the limit that option ``maxOffsetsPerTrigger`` sets."""
        return ReadAllAvailable() if self._offsets_max is None else ReadMaxRows(self._offsets_max)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Fix the end of the stream: records appended later are not read."""
        self._target = self._plan().end_offset

    def latestOffset(  # noqa: N802 - Spark's name
        self, start: dict[str, Any], limit: ReadLimit
    ) -> dict[str, Any]:
        """Return the end of the next micro-batch; ``start`` itself if there is nothing new.

        Raises:
            LogTruncatedError: The log no longer has the record before ``start``.
            AuditError: The log start has moved past ``start``.
        """
        plan = self._plan()
        at = self._check(plan, start)
        end = plan.end_offset if self._target is None else min(plan.end_offset, self._target)
        if end <= start["offset"]:
            return start
        if isinstance(limit, ReadMaxRows):
            end = _batch_end(plan, start["offset"] + limit.max_rows, end)
        return position_at(plan, end, at.epochs).to_dict()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the tasks of the range, as ``Question.splits``."""
        plan = self._plan()
        self._check(plan, start)
        self._check(plan, end)
        pairs = self._question.splits(plan, start["offset"], end["offset"])
        return [PlannedRange(plan, *pair) for pair in pairs]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task; Spark makes one without a value if there are none."""
        if isinstance(partition, PlannedRange):
            yield from read_partition(partition.plan, self._question, partition)
        elif partition.value is not None:
            raise TypeError(f"not one of our partitions: {partition!r}")

    def _check(self, plan: ReadPlan, position: dict[str, Any]) -> LogPosition:
        """Check that a position belongs to this log, and return it.

        Only a recovery can lose what was committed. It begins an epoch and an incarnation, so the
        digest is compared when the query starts, and when one of them is new.
        """
        at = LogPosition.from_dict(position)
        log = (plan.epochs, plan.log_incarnation)
        check_position(plan, at, with_digest=log != self._verified)
        if at.offset > 0:
            self._verified = log
        return at

    def _plan(self) -> ReadPlan:
        # Imported here: executors unpickle this class and lack the planning modules.
        from audit.directory import plan_source

        return plan_source(Path(self._path))


def _batch_end(plan: ReadPlan, wanted: int, end_offset: int) -> int:
    """Return the end of the batch with the offset before ``wanted``, at most ``end_offset``."""
    baseline = plan.baseline
    if baseline is not None and wanted < baseline.end_offset:
        wanted = baseline.end_offset
    for segment in plan.segments:
        if segment.end_offset >= wanted:
            for batch in read_segment(segment):
                if batch.header.end_offset >= wanted:
                    return min(batch.header.end_offset, end_offset)
    return end_offset

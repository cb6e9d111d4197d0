"""The executor's half of the Spark data source: reads a planned range as Arrow batches.

Spark's Python workers import this module, so it imports only modules that read: nothing that lists
directories, makes plans or belongs to the server.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from audit.cycle_collection import rare_collections
from audit.errors import AuditError
from audit.plan import ReadPlan
from audit.reader import read_state, read_table
from audit.splits import costs_of, default_count, files_in, splits
from quorum.errors import StorageError

TASKS_DEFAULT = 4
"""So many tasks if there are fewer files, unless what they replay is much of their work."""
TASK_OFFSETS_MIN = 20_000
"""A task of fewer offsets takes longer to start than to run."""


@dataclass(frozen=True, slots=True)
class Question:
    """The parameters of one read; ``as_of`` selects a state instead of a range."""

    table: str
    types: tuple[str, ...] = ()
    as_of: int | None = None
    columns: tuple[str, ...] = ()
    """The columns to return; empty for all."""
    tasks: int | None = None
    """At most so many tasks; None leaves the number to ``splits``."""

    def splits(self, plan: ReadPlan, start: int, end: int) -> list[tuple[int, int]]:
        """Return the range of offsets of each task."""
        costs = costs_of(self.table, self.types)
        count = self.tasks
        if count is None:
            most = min(
                max(TASKS_DEFAULT, files_in(plan, start, end)), (end - start) // TASK_OFFSETS_MIN
            )
            count = default_count(plan, start, end, most, costs)
        return splits(plan, start, end, count, costs)


class OffsetRange(InputPartition):
    """Offsets [start, end) for one task."""

    def __init__(self, start: int, end: int) -> None:
        super().__init__((start, end))
        self.start = start
        self.end = end


class HistoryReader(DataSourceReader):
    """Reads a plan, one task per range of offsets; holds plain values only."""

    def __init__(self, plan: ReadPlan, question: Question, start: int, end: int) -> None:
        self._plan = plan
        self._question = question
        self._start = start
        self._end = end

    def partitions(self) -> Sequence[InputPartition]:
        """Return the tasks, as ``Question.splits``; a single one for a state."""
        if self._question.as_of is not None:
            return [OffsetRange(self._start, self._end)]
        return [
            OffsetRange(*pair) for pair in self._question.splits(self._plan, self._start, self._end)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task; Spark makes one without a value if there are none."""
        if isinstance(partition, OffsetRange):
            yield from read_partition(self._plan, self._question, partition)
        elif partition.value is not None:
            raise TypeError(f"not one of our partitions: {partition!r}")


def read_partition(
    plan: ReadPlan, question: Question, partition: OffsetRange
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one task, in the types Spark expects.

    Raises:
        AuditError: A planned file is gone, because the node trimmed its log meanwhile.
        LogDamagedError, StorageError: As ``read_table``.
    """
    if question.as_of is not None:
        found = read_state(plan, question.table, question.as_of, question.columns)
    else:
        found = read_table(
            plan, question.table, partition.start, partition.end, types=question.types,
            names=question.columns,
        )  # fmt: skip
    try:
        # The process is Spark's own for this task.
        with rare_collections():
            for batch in found:
                yield _for_spark(batch)
    except StorageError as error:
        if error.path is None or Path(str(error.path)).exists():
            raise
        # Without its cause: Spark prints the whole chain, but only the first line helps.
        raise AuditError(
            f"{error.path}: removed during the query, because the node trimmed its log; "
            "run the query again (if no task can see the file, check that the path is shared)"
        ) from None


def _for_spark(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Convert timestamps to microseconds, which Spark needs."""
    microseconds = pa.timestamp("us", tz="UTC")
    arrays = [
        array.cast(microseconds) if pa.types.is_timestamp(array.type) else array
        for array in batch.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)

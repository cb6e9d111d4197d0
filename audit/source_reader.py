"""The executor's half of the Spark data source: a planned piece of the log in, Arrow out.

Imported by Spark's Python workers, so it sees the reading modules only: no directory is looked
at, no plan made, and nothing of the server is imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from audit.errors import AuditError
from audit.plan import ReadPlan
from audit.reader import read_state, read_table
from audit.schema import ColumnType, columns
from quorum.errors import StorageError


@dataclass(frozen=True, slots=True)
class Question:
    """What one read asks for; ``as_of`` asks for a state instead of a range."""

    table: str
    types: tuple[str, ...] = ()
    as_of: int | None = None


class OffsetRange(InputPartition):
    """Offsets [start, end) for one task."""

    def __init__(self, start: int, end: int) -> None:
        super().__init__((start, end))
        self.start = start
        self.end = end


class HistoryReader(DataSourceReader):
    """Reads what was planned, one task per file range; holds plain values only."""

    def __init__(self, plan: ReadPlan, question: Question, start: int, end: int) -> None:
        self._plan = plan
        self._question = question
        self._start = start
        self._end = end

    def partitions(self) -> Sequence[InputPartition]:
        """One task per segment or checkpoint in the range; one alone for a state."""
        if self._question.as_of is not None:
            return [OffsetRange(self._start, self._end)]
        return [OffsetRange(*pair) for pair in self._plan.ranges(self._start, self._end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        if not isinstance(partition, OffsetRange):
            raise TypeError(f"not one of our partitions: {partition!r}")
        yield from read_partition(self._plan, self._question, partition)


def read_partition(
    plan: ReadPlan, question: Question, partition: OffsetRange
) -> Iterator[pa.RecordBatch]:
    """The rows of one task, in the types Spark expects.

    Raises:
        AuditError: A planned file is gone; the node trimmed its log meanwhile.
        LogDamagedError, StorageError: As ``read_table``.
    """
    if question.as_of is not None:
        found = read_state(plan, question.table, question.as_of)
    else:
        found = read_table(
            plan, question.table, partition.start, partition.end, types=question.types
        )
    try:
        for batch in found:
            yield _for_spark(question.table, batch)
    except StorageError as error:
        if error.path is None or Path(str(error.path)).exists():
            raise
        # Without its cause: Spark prints the whole chain, and the first line is what helps.
        raise AuditError(
            f"{error.path}: removed while the query ran, as the node trimmed its log; "
            "run the query again (if no task can see the file, check that the path is shared)"
        ) from None


def _for_spark(table: str, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Spark keeps microseconds; everything else is the same."""
    microseconds = pa.timestamp("us", tz="UTC")
    arrays = [
        array.cast(microseconds) if column.type is ColumnType.TIME else array
        for array, column in zip(batch.columns, columns(table))
    ]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)

"""Write ranges of a log into an export: the rows of every table, committed range by range."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from audit.arrow_schema import arrow_schema
from audit.divergence import CLUSTER_ID_KEY, POSITION_KEY
from audit.errors import reason_of
from audit.export_contents import START_KEY, TABLES_KEY
from audit.export_files import ExportedRange, ExportFolder
from audit.plan import ReadPlan
from audit.position import position_at
from audit.reader import TableRows
from audit.replay import Baseline, scan_range
from audit.scan import ScannedBatch
from audit.schema import HISTORY, TABLES
from quorum.errors import StorageError
from quorum.log_position import LogPosition

ROWS_PER_GROUP = 64 * 1024
_PROGRESS_EVERY = 500


@dataclass(slots=True)
class ExportReport:
    """The result of one run. Offsets [start_offset, end_offset) are exported now."""

    start_offset: int
    end_offset: int
    written: list[ExportedRange] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)
    """Rows written by table; tables without new rows are omitted."""
    repaired: list[str] = field(default_factory=list)
    """Missing files of typed tables that were written again."""
    removed: list[str] = field(default_factory=list)
    """Files of an interrupted run that were removed."""
    problems: tuple[str, ...] = ()
    """Damaged or missing parts of the source."""
    damage: str = ""
    """Why the export ends before the log does; only with ``only_before_damage``."""
    position: LogPosition | None = None
    """Behind the exported records, as a consumer or a watch stores it; None if all are older."""


class RangeWriter:
    """Exports offsets that the export lacks, range after range."""

    def __init__(
        self, plan: ReadPlan, folder: ExportFolder, report: ExportReport, rows_per_file: int
    ) -> None:
        self._plan = plan
        self._folder = folder
        self._report = report
        self._rows_per_file = rows_per_file
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._counts: dict[str, int] = {}

    def run(
        self, start: int, end_offset: int, progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Export [start, end_offset); each range ends outside any metadata transaction."""
        total = end_offset - start
        collected = TableRows(self._plan, TABLES, start_offset=start, end_offset=end_offset)
        done = ExportedRange(start, start, 0)
        try:
            items = scan_range(self._plan, start, end_offset, grouped=True)
            for number, item in enumerate(items):
                collected.add(item)
                if isinstance(item, ScannedBatch) and not item.is_settled:
                    continue
                end, epoch = _behind(item)
                done = done._replace(end=end, epoch=epoch)
                self._write(collected, at_least=ROWS_PER_GROUP)
                if self._is_full(collected):
                    done = self._close_range(collected, done)
                if progress is not None and number % _PROGRESS_EVERY == 0:
                    progress(end - start, total)
            collected.drop_behind(done.end)
            if done.end > done.start:
                self._close_range(collected, done)
        finally:
            for writer in self._writers.values():
                writer.close()
        if progress is not None:
            progress(total, total)

    def _is_full(self, collected: TableRows) -> bool:
        return self._counts.get(HISTORY, 0) + collected.waiting(HISTORY) >= self._rows_per_file

    def _write(self, collected: TableRows, *, at_least: int) -> None:
        for table in TABLES:
            batch = collected.take(table, at_least=at_least)
            if batch is not None:
                self._write_batch(table, batch)

    def _write_batch(self, table: str, batch: pa.RecordBatch) -> None:
        try:
            if table not in self._writers:
                self._writers[table] = self._open(table)
            self._writers[table].write_batch(batch)
        except OSError as error:
            path = self._folder.temporary(table)
            raise StorageError(f"cannot write the export: {reason_of(error)}", path) from error
        self._counts[table] = self._counts.get(table, 0) + batch.num_rows

    def _open(self, table: str) -> pq.ParquetWriter:
        schema = arrow_schema(table)
        if table == HISTORY:
            schema = schema.with_metadata({CLUSTER_ID_KEY: self._plan.cluster_id.encode()})
        return pq.ParquetWriter(self._folder.temporary(table), schema, compression="zstd")

    def _close_range(self, collected: TableRows, done: ExportedRange) -> ExportedRange:
        """Commit everything collected as one range and return the empty range that follows."""
        self._write(collected, at_least=1)
        known = () if self._report.position is None else self._report.position.epochs
        position = position_at(self._plan, done.end, known)
        temporaries = {}
        for table, writer in self._writers.items():
            if table == HISTORY:
                rows = {name: count for name, count in self._counts.items() if name != HISTORY}
                writer.add_key_value_metadata(
                    {
                        POSITION_KEY: position.to_json().encode(),
                        START_KEY: str(self._report.start_offset).encode(),
                        TABLES_KEY: json.dumps(rows, sort_keys=True).encode(),
                    }
                )
            writer.close()
            temporaries[table] = self._folder.temporary(table)
        self._writers.clear()
        self._folder.commit(done, temporaries)
        self._report.written.append(done)
        self._report.position = position
        self._report.end_offset = done.end
        for table, count in self._counts.items():
            self._report.rows[table] = self._report.rows.get(table, 0) + count
        self._counts.clear()
        return ExportedRange(done.end, done.end, done.epoch)


def _behind(item: Baseline | ScannedBatch) -> tuple[int, int]:
    """Return the end offset and the epoch of a scanned item."""
    if isinstance(item, Baseline):
        return max(item.snapshot_id.offset, 1), item.snapshot_id.epoch
    return item.batch.header.end_offset, item.batch.header.epoch

"""The incremental exporter: a metadata log as Parquet files, one folder per table.

Needs no Java. Each run exports the records committed since the last one and never writes a row
twice. ``export_files`` decides what remains of an interrupted run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from audit.arrow_schema import arrow_schema
from audit.cycle_collection import rare_collections
from audit.directory import plan_source
from audit.divergence import CLUSTER_ID_KEY, POSITION_KEY, check_same_log, stored_position
from audit.errors import AuditError
from audit.export_files import ExportedRange, ExportFolder
from audit.plan import ReadPlan
from audit.position import position_at
from audit.reader import TableRows
from audit.replay import Baseline, scan_range
from audit.scan import ScannedBatch
from audit.schema import HISTORY, TABLES
from quorum.errors import StorageError
from quorum.log_position import LogPosition

ROWS_PER_FILE = 1_000_000
"""A range is closed when its history has at least this many rows."""
ROWS_PER_GROUP = 64 * 1024
PLANS_MAX = 5
"""Attempts to plan while a running node trims its directory."""
_PROGRESS_EVERY = 500


@dataclass(slots=True)
class ExportReport:
    """The result of one run. Offsets [start_offset, end_offset) are exported now."""

    start_offset: int
    end_offset: int
    written: list[ExportedRange] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)
    """Rows written by table; tables without new rows are omitted."""
    removed: list[str] = field(default_factory=list)
    """Files of an interrupted run that were removed."""
    problems: tuple[str, ...] = ()
    """Damaged or missing parts of the source."""
    damage: str = ""
    """Why the export ends before the log does; only with ``only_before_damage``."""
    position: LogPosition | None = None
    """Behind the exported records, as a consumer or a watch stores it; None if all are older."""


def export_log(
    source: Path,
    target: Path,
    *,
    with_unknown: bool = False,
    only_before_damage: bool = False,
    rows_per_file: int = ROWS_PER_FILE,
    progress: Callable[[int, int], None] | None = None,
) -> ExportReport:
    """Export the records committed in ``source`` that are not yet in ``target``.

    The source may be the directory of a running node: if a segment is trimmed between planning
    and reading, planning starts over (``PLANS_MAX`` times at most).

    ``with_unknown`` includes records that are not known to be committed. Their rows are marked;
    the log may still truncate them. ``only_before_damage`` exports the part of a damaged log before
    the damage, which the report names. ``progress`` is called with the number of offsets done and
    the total.

    Raises:
        LogTruncatedError: The log no longer contains the exported records.
        AuditError: There is nothing to read; the log lost offsets before they were exported; the
            export is of another cluster, was changed by hand, or is in use by another process.
        LogDamagedError: The log is damaged; nothing was written.
        CorruptBatchError, SnapshotCorruptError: A file holds records unknown to this release, or
            became corrupt during the read. Ranges before it may have been exported.
        StorageError: A file cannot be read or written.
    """
    look = partial(
        plan_source, source, with_unknown=with_unknown, only_before_damage=only_before_damage
    )
    for _ in range(PLANS_MAX - 1):
        before = _file_names(source)
        try:
            return _export_planned(look, target, rows_per_file, progress)
        except StorageError:
            if _file_names(source) == before:
                raise
    return _export_planned(look, target, rows_per_file, progress)


def _file_names(source: Path) -> list[str]:
    """Return the files of the partition directory, which trimming changes."""
    return sorted(str(path) for path in source.rglob("0*")) if source.is_dir() else []


def _export_planned(
    look: Callable[[], ReadPlan],
    target: Path,
    rows_per_file: int,
    progress: Callable[[int, int], None] | None,
) -> ExportReport:
    plan = look()
    folder = ExportFolder(target)
    with folder.locked():
        removed = folder.remove_unfinished()
        ranges = folder.ranges()
        check_same_log(plan, folder, ranges)
        start = ranges[-1].end if ranges else plan.first_offset
        if start < plan.start_offset and plan.baseline is None:
            raise AuditError(
                f"{plan.source}: the log begins at {plan.start_offset}; offsets {start} to "
                f"{plan.start_offset} were never exported, and no checkpoint covers them"
            )
        first = ranges[0].start if ranges else plan.first_offset
        report = ExportReport(first, start, removed=removed, problems=plan.problems)
        report.damage = plan.damage
        report.position = stored_position(folder, ranges)
        if plan.end_offset > start:
            with rare_collections():
                _Exporter(plan, folder, report, rows_per_file).run(start, progress)
    return report


class _Exporter:
    """One run over [start, plan.end_offset)."""

    def __init__(
        self, plan: ReadPlan, folder: ExportFolder, report: ExportReport, rows_per_file: int
    ) -> None:
        self._plan = plan
        self._folder = folder
        self._report = report
        self._rows_per_file = rows_per_file
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._counts: dict[str, int] = {}

    def run(self, start: int, progress: Callable[[int, int], None] | None) -> None:
        """Export range after range; each ends outside any metadata transaction."""
        total = self._plan.end_offset - start
        collected = TableRows(self._plan, TABLES, start_offset=start)
        done = ExportedRange(start, start, 0)
        try:
            items = scan_range(self._plan, start, self._plan.end_offset, grouped=True)
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
            raise StorageError(f"cannot write the export: {error}", path) from error
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
                writer.add_key_value_metadata({POSITION_KEY: position.to_json().encode()})
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

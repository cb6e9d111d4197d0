"""Write files of an export again that were lost, from a log that still has their records.

A range without ``history`` is exported anew. Of a range that has it, only the lost files are
written, with as many rows as ``history`` lists for them.
"""

from __future__ import annotations

import pyarrow.compute as pc
import pyarrow.parquet as pq

from audit.arrow_schema import arrow_schema
from audit.errors import ExportDamagedError, reason_of
from audit.export_contents import ExportContents, LostTables, readable
from audit.export_files import ExportedRange, ExportFolder
from audit.plan import ReadPlan
from audit.range_writer import ROWS_PER_GROUP, ExportReport, RangeWriter
from audit.reader import TableRows
from audit.replay import scan_range
from audit.schema import HISTORY
from quorum.errors import StorageError


def check_repairable(plan: ReadPlan, folder: ExportFolder, contents: ExportContents) -> None:
    """Check that the log has the records of everything that the export lost.

    Raises:
        ExportDamagedError: It does not; names the offsets or the file.
        StorageError: A history file cannot be read.
    """
    for start, end in contents.holes:
        if not _is_covered(plan, start, end):
            raise ExportDamagedError(
                f"the file of offsets {start} to {end} is missing from the export, and "
                f"{plan.source} does not have them all; restore it, or export into another folder",
                folder.path / HISTORY,
            )
    for lost in contents.lost:
        exported = lost.exported
        is_covered = _is_covered(plan, exported.start, exported.end)
        if not is_covered or _baselines(folder, exported) != _planned_baselines(plan, exported):
            raise _irreparable(plan, folder, lost)


def repair(
    plan: ReadPlan,
    folder: ExportFolder,
    contents: ExportContents,
    report: ExportReport,
    rows_per_file: int,
) -> None:
    """Write what is missing, and add it to the report.

    Raises:
        ExportDamagedError: The log has other rows than the lost file had.
        LogDamagedError, CorruptBatchError, SnapshotCorruptError, StorageError: As ``export_log``.
    """
    position, end_offset = report.position, report.end_offset
    for start, end in contents.holes:
        RangeWriter(plan, folder, report, rows_per_file).run(start, end)
    # Those are of the export's end, not of a range inside it.
    report.position, report.end_offset = position, end_offset
    for lost in contents.lost:
        _write_tables(plan, folder, lost)
        for table, count in lost.rows.items():
            report.repaired.append(f"{table}/{lost.exported.file_name}")
            report.rows[table] = report.rows.get(table, 0) + count


def _is_covered(plan: ReadPlan, start: int, end: int) -> bool:
    """Whether the log has the records of a range, or a checkpoint inside it in their place."""
    baseline = plan.baseline
    is_begun = start >= plan.start_offset or (baseline is not None and baseline.end_offset <= end)
    return is_begun and end <= plan.end_offset


def _planned_baselines(plan: ReadPlan, exported: ExportedRange) -> list[int]:
    baseline = plan.baseline
    if baseline is None or not exported.start < baseline.end_offset <= exported.end:
        return []
    return [baseline.end_offset]


def _baselines(folder: ExportFolder, exported: ExportedRange) -> list[int]:
    """Return the end offsets of the checkpoints whose rows the history of a range has."""
    path = folder.path / HISTORY / exported.file_name
    with readable(path):
        rows = pq.read_table(path, columns=["offset", "is_baseline"])
    ends: list[int] = pc.unique(rows.filter(rows["is_baseline"])["offset"]).to_pylist()
    return sorted(offset + 1 for offset in ends)


def _write_tables(plan: ReadPlan, folder: ExportFolder, lost: LostTables) -> None:
    exported = lost.exported
    tables = sorted(lost.rows)
    collected = TableRows(plan, tables, start_offset=exported.start, end_offset=exported.end)
    counts = dict.fromkeys(tables, 0)
    writers: dict[str, pq.ParquetWriter] = {}
    try:
        for table in tables:
            path = folder.temporary(table)
            writers[table] = pq.ParquetWriter(path, arrow_schema(table), compression="zstd")
        for item in scan_range(plan, exported.start, exported.end, grouped=True):
            collected.add(item)
            _write(collected, writers, counts, at_least=ROWS_PER_GROUP)
        _write(collected, writers, counts, at_least=1)
    except OSError as error:
        raise StorageError(f"cannot write the export: {reason_of(error)}", folder.path) from error
    finally:
        for writer in writers.values():
            writer.close()
    if counts != dict(lost.rows):
        raise _irreparable(plan, folder, lost)
    for table in tables:
        folder.put_back(exported, table)


def _write(
    collected: TableRows,
    writers: dict[str, pq.ParquetWriter],
    counts: dict[str, int],
    *,
    at_least: int,
) -> None:
    for table, writer in writers.items():
        batch = collected.take(table, at_least=at_least)
        if batch is not None:
            writer.write_batch(batch)
            counts[table] += batch.num_rows


def _irreparable(plan: ReadPlan, folder: ExportFolder, lost: LostTables) -> ExportDamagedError:
    return ExportDamagedError(
        f"this file of the export is missing, and {plan.source} does not have what was in it; "
        "restore it, or export into another folder",
        folder.path / min(lost.rows) / lost.exported.file_name,
    )

"""The incremental exporter: a metadata log as Parquet files, one folder per table.

Needs no Java. Each run exports the records committed since the last one and never writes a row
twice. ``export_files`` decides what remains of an interrupted run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from audit.cycle_collection import rare_collections
from audit.directory import plan_source
from audit.divergence import check_same_log, stored_position
from audit.errors import AuditError
from audit.export_contents import contents_of
from audit.export_files import ExportFolder
from audit.export_repair import check_repairable, repair
from audit.export_target import check_target
from audit.plan import ReadPlan
from audit.range_writer import ExportReport, RangeWriter
from quorum.errors import StorageError

ROWS_PER_FILE = 1_000_000
"""A range is closed when its history has at least this many rows."""
PLANS_MAX = 5
"""Attempts to plan while a running node trims its directory."""


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

    Files that the export lost are written again.

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
        ExportTargetError: ``target`` is in or around a node's data directory; nothing was written.
        ExportDamagedError: A file of the export is damaged, or is lost and the log no longer has
            its records.
        LogDamagedError: The log is damaged; nothing was written.
        CorruptBatchError, SnapshotCorruptError: A file holds records unknown to this release, or
            became corrupt during the read. Ranges before it may have been exported.
        StorageError: A file cannot be read or written.
    """
    check_target(source, target)
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
        contents = contents_of(folder)
        ranges = contents.ranges
        check_repairable(plan, folder, contents)
        check_same_log(plan, folder, ranges)
        start = ranges[-1].end if ranges else plan.first_offset
        if start < plan.start_offset and plan.baseline is None:
            raise AuditError(
                f"{plan.source}: the log begins at {plan.start_offset}; offsets {start} to "
                f"{plan.start_offset} were never exported, and no checkpoint covers them"
            )
        first = contents.start if ranges else plan.first_offset
        removed = folder.remove_unfinished()
        report = ExportReport(first, start, removed=removed, problems=plan.problems)
        report.damage = plan.damage
        report.position = stored_position(folder, ranges)
        with rare_collections():
            repair(plan, folder, contents, report, rows_per_file)
            if plan.end_offset > start:
                writer = RangeWriter(plan, folder, report, rows_per_file)
                writer.run(start, plan.end_offset, progress)
    return report

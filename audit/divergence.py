"""Detect that a log no longer contains the records exported from it, and from which offset on.

An unsafe recovery may truncate a log and continue in a newer epoch. The owner of the export needs
the exact offset (requirements 320.4 and 320.9): the first batch whose epoch, bounds or log
digest differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pyarrow.compute as pc
import pyarrow.parquet as pq

from audit.errors import AuditError, LogTruncatedError
from audit.export_contents import readable
from audit.export_files import ExportedRange, ExportFolder
from audit.plan import ReadPlan
from audit.schema import HISTORY
from audit.segment_file import read_segment
from quorum.log_position import LogPosition

CLUSTER_ID_KEY = b"quorate.cluster_id"
"""Metadata key of ``history`` files."""
POSITION_KEY = b"quorate.position"
"""Metadata key of ``history`` files: the ``LogPosition`` behind their records, as JSON."""

_COLUMNS = ["batch_base_offset", "batch_end_offset", "epoch", "digest", "is_baseline"]


class BatchMark(NamedTuple):
    """The identity of a batch: bounds, epoch, and the log digest at its end if known."""

    base_offset: int
    end_offset: int
    epoch: int
    digest: str | None

    def differs_from(self, other: BatchMark) -> bool:
        """Return whether the two cannot be the same batch of the same log."""
        is_digest_known = self.digest is not None and other.digest is not None
        return self[:3] != other[:3] or (is_digest_known and self.digest != other.digest)


def check_same_log(plan: ReadPlan, folder: ExportFolder, ranges: list[ExportedRange]) -> None:
    """Check that the log still contains the exported batches, as far as it reaches down.

    Raises:
        LogTruncatedError: It does not; carries the first divergent offset.
        AuditError: The export comes from another cluster.
    """
    if not ranges:
        return
    _check_cluster(plan, folder.path / HISTORY / ranges[-1].file_name)
    common = min(ranges[-1].end, plan.end_offset)
    if common <= plan.start_offset:
        return
    holder = next(found for found in ranges if found.start < common <= found.end)
    exported = _mark_ending(_exported_marks(folder, [holder], common - 1), common)
    in_log = _mark_ending(_log_marks(plan, common - 1, common), common)
    if exported is None or in_log is None:
        if exported is in_log:
            return
    elif not exported.differs_from(in_log):
        return
    offset, epoch = _first_difference(plan, folder, ranges, common)
    raise LogTruncatedError(
        f"{plan.source} no longer contains the records exported to {folder.path}",
        offset=offset,
        epoch=epoch,
        is_exact=all(before.end == after.start for before, after in pairwise(ranges)),
    )


def stored_position(folder: ExportFolder, ranges: list[ExportedRange]) -> LogPosition | None:
    """Return the position behind the last range; None if there is none.

    Releases before positions were stored wrote none.

    Raises:
        AuditError: It is no position.
        ExportDamagedError, StorageError: The file is damaged, or cannot be read.
    """
    if not ranges:
        return None
    path = folder.path / HISTORY / ranges[-1].file_name
    with readable(path):
        text = (pq.read_metadata(path).metadata or {}).get(POSITION_KEY)
    if text is None:
        return None
    try:
        return LogPosition.from_json(text.decode())
    except ValueError as error:
        raise AuditError(f"{path}: {error}; the file was changed by hand") from error


def _check_cluster(plan: ReadPlan, path: Path) -> None:
    with readable(path):
        metadata = pq.read_schema(path).metadata or {}
    cluster_id = metadata.get(CLUSTER_ID_KEY, b"").decode(errors="replace")
    if cluster_id and plan.cluster_id and cluster_id != plan.cluster_id:
        raise AuditError(
            f"{path}: exported from cluster {cluster_id}, but {plan.source} is of {plan.cluster_id}"
        )


def _exported_marks(
    folder: ExportFolder, ranges: Iterable[ExportedRange], start_offset: int = 0
) -> Iterator[BatchMark]:
    """Yield the exported batches that end above ``start_offset``, in order."""
    for exported in ranges:
        path = folder.path / HISTORY / exported.file_name
        with readable(path):
            rows = pq.read_table(path, columns=_COLUMNS)
        rows = rows.filter(pc.invert(rows["is_baseline"])).drop_columns(["is_baseline"])
        before = None
        for values in zip(*(column.to_pylist() for column in rows.columns)):
            mark = BatchMark(*values)
            if mark != before and mark.end_offset > start_offset:
                yield mark
            before = mark


def _log_marks(plan: ReadPlan, start_offset: int, end_offset: int) -> Iterator[BatchMark]:
    for segment in plan.segments:
        if segment.end_offset <= start_offset or segment.start_offset >= end_offset:
            continue
        for batch in read_segment(segment):
            header = batch.header
            if header.end_offset > end_offset:
                return
            if header.end_offset > start_offset:
                digest = batch.digest.hex() or None
                yield BatchMark(header.base_offset, header.end_offset, header.epoch, digest)


def _mark_ending(marks: Iterable[BatchMark], offset: int) -> BatchMark | None:
    return next((mark for mark in marks if mark.end_offset == offset), None)


def _first_difference(
    plan: ReadPlan, folder: ExportFolder, ranges: list[ExportedRange], end_offset: int
) -> tuple[int, int]:
    """Return the offset and the epoch of the first exported batch that is not in the log."""
    start = plan.start_offset
    in_log = _log_marks(plan, start, end_offset)
    for exported in _exported_marks(folder, ranges, start):
        found = next((mark for mark in in_log if mark.end_offset > exported.base_offset), None)
        if found is None or exported.differs_from(found):
            return exported.base_offset, exported.epoch
    return end_offset, plan.epoch_at(end_offset)

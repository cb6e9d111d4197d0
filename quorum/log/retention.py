"""Remove segments in an order that leaves no gap after a crash.

There are three reasons to remove: the log start moved up, the log was cut, or a snapshot replaces
the log. Each has a stored plan (the log start, the lowered durable end, the replacement), and
recovery may repeat its steps from any point.

See: requirements 630.5, 630.6, 630.9; docs/architecture.md (A replica that fell behind).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from quorum.errors import invariant
from quorum.log.digest_file import write_digest_file
from quorum.log.layout import (
    DELETED_SUFFIX,
    DIGEST_SUFFIX,
    INDEX_SUFFIX,
    SEGMENT_SUFFIX,
    parse_segment_name,
    segment_bases,
    segment_path,
)
from quorum.log.log_start_file import LogStart, LogStartFile
from quorum.log.segment import Segment
from quorum.log.segment_tail import SegmentTail
from quorum.log.side_file import TEMPORARY_SUFFIX
from quorum.ports import FileSystem

_SEGMENT_FILES = (SEGMENT_SUFFIX, INDEX_SUFFIX, DIGEST_SUFFIX)


def covered_bases(bases: Sequence[int], start_offset: int) -> list[int]:
    """Return the segments of ``bases`` (all, ascending) that end at or below ``start_offset``.

    The last segment is never returned: its end is not known from names.
    """
    return [base for base, after in pairwise(bases) if after <= start_offset]


def remove_segment(fs: FileSystem, directory: Path, base_offset: int) -> None:
    """Unlink a segment and the files beside it; durable after ``sync_directory``."""
    for suffix in _SEGMENT_FILES:
        fs.unlink(segment_path(directory, base_offset, suffix))


def remove_covered(fs: FileSystem, directory: Path, bases: Iterable[int]) -> None:
    """Remove segments below the stored log start, oldest first.

    Durability: the log start must be stored. A crash may leave a gap only below it, and recovery
    finishes the removal before it searches for gaps.
    """
    for base in bases:
        remove_segment(fs, directory, base)
    fs.sync_directory(directory)


def remove_cut(fs: FileSystem, directory: Path, base_offset: int) -> None:
    """Remove the newest segment, durably.

    Segments are removed one at a time: a crash that lost two removals in the wrong order would
    leave a gap, which looks like damage.
    """
    remove_segment(fs, directory, base_offset)
    fs.sync_directory(directory)


def create_segment(fs: FileSystem, directory: Path, base: SegmentTail) -> Segment:
    """Create an empty segment behind ``base``; its name and digest file are durable on return.

    Raises:
        DiskFullError: No segment was created.
        StorageError: The caller must stop.
    """
    path = segment_path(directory, base.end_offset)
    # Only this and the creation itself need space. After a failure this file is an orphan, which
    # the next start removes.
    write_digest_file(fs, directory, base.end_offset, base.digest)
    file = fs.open(path, create=True, writable=True)
    size = file.size()
    invariant(size == 0, "a new segment has content already", path=path, size=size)
    fs.sync_directory(directory)
    return Segment(file, path, base._replace(position=0, unindexed_bytes=0))


def finish_replacement(
    fs: FileSystem, directory: Path, start_file: LogStartFile, plan: LogStart
) -> Segment:
    """Empty the log by a stored plan: remove all segments and create one at the plan's start.

    Repeatable: before the plan is stored as done, no append is possible.

    Raises:
        StorageError: The plan remains and is finished at the next start.
    """
    names = fs.list_directory(directory)
    for base in reversed(segment_bases(names)):
        remove_segment(fs, directory, base)
    fs.sync_directory(directory)
    start = plan.start
    segment = create_segment(fs, directory, SegmentTail(start.offset, start.epoch, 0, plan.digest))
    start_file.save(LogStart(start, plan.digest))
    return segment


def remove_leftovers(fs: FileSystem, directory: Path) -> None:
    """Remove the leftovers of an interrupted removal or replacement.

    These are files marked for deletion, temporary files, and index and digest files without a
    segment.
    """
    names = fs.list_directory(directory)
    segments = set(segment_bases(names))
    for name in names:
        beside = (parse_segment_name(name, suffix) for suffix in (INDEX_SUFFIX, DIGEST_SUFFIX))
        is_orphan = any(base is not None and base not in segments for base in beside)
        if is_orphan or name.endswith((DELETED_SUFFIX, TEMPORARY_SUFFIX)):
            fs.unlink(directory / name)

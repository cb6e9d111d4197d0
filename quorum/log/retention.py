"""Removing segments in an order that a crash cannot turn into a gap.

Three reasons to remove: the log start moved up, the log was cut, or a snapshot replaces it
all. Each is a written plan (the stored log start, the lowered durable end, the stored
replacement) whose steps may be repeated by recovery from any point.

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
    """Those segments, of all ``bases`` ascending, that end at or below ``start_offset``.

    The last segment is never among them: where it ends is not in its name.
    """
    return [base for base, after in pairwise(bases) if after <= start_offset]


def remove_segment(fs: FileSystem, directory: Path, base_offset: int) -> None:
    """Unlink a segment and the files beside it; durable after ``sync_directory``."""
    for suffix in _SEGMENT_FILES:
        fs.unlink(segment_path(directory, base_offset, suffix))


def remove_covered(fs: FileSystem, directory: Path, bases: Iterable[int]) -> None:
    """Remove segments below the stored log start, oldest first.

    Durability: the log start must be stored. A gap that a crash leaves lies below it, where
    recovery finishes the removal before it looks for gaps.
    """
    for base in bases:
        remove_segment(fs, directory, base)
    fs.sync_directory(directory)


def remove_cut(fs: FileSystem, directory: Path, base_offset: int) -> None:
    """Remove the newest segment, durably.

    One at a time: were two removals lost to a crash in the wrong order, the log would have a
    gap where no damage is.
    """
    remove_segment(fs, directory, base_offset)
    fs.sync_directory(directory)


def create_segment(fs: FileSystem, directory: Path, base: SegmentTail) -> Segment:
    """Make an empty segment behind ``base``; its name and digest file are durable on return.

    Raises:
        DiskFullError: There is no new segment.
        StorageError: The caller must stop.
    """
    path = segment_path(directory, base.end_offset)
    # Only this and the creation itself need space; what it leaves then is an orphan that the
    # next start removes.
    write_digest_file(fs, directory, base.end_offset, base.digest)
    file = fs.open(path, create=True, writable=True)
    size = file.size()
    invariant(size == 0, "a new segment has content already", path=path, size=size)
    fs.sync_directory(directory)
    return Segment(file, path, base._replace(position=0, unindexed_bytes=0))


def finish_replacement(
    fs: FileSystem, directory: Path, start_file: LogStartFile, plan: LogStart
) -> Segment:
    """Carry out a stored plan to empty the log: no segments but a new one at its start.

    Repeatable: until the plan is stored as done nothing can have been appended.

    Raises:
        StorageError: The plan stands and is finished at the next start.
    """
    names = fs.list_directory(directory)
    for base in reversed(segment_bases(names)):
        remove_segment(fs, directory, base)
    fs.sync_directory(directory)
    start = plan.start
    segment = create_segment(fs, directory, SegmentTail(start.offset, start.epoch, 0, plan.digest))
    start_file.save(LogStart(start, plan.digest))
    return segment


def remove_leftovers(fs: FileSystem, directory: Path) -> tuple[str, ...]:
    """Remove what an interrupted removal or replacement left: files that mean nothing now.

    Those marked for deletion, temporary files, and index and digest files without a segment.

    Returns:
        The names removed.
    """
    names = fs.list_directory(directory)
    segments = set(segment_bases(names))
    leftovers = []
    for name in names:
        beside = (parse_segment_name(name, suffix) for suffix in (INDEX_SUFFIX, DIGEST_SUFFIX))
        is_orphan = any(base is not None and base not in segments for base in beside)
        if is_orphan or name.endswith((DELETED_SUFFIX, TEMPORARY_SUFFIX)):
            fs.unlink(directory / name)
            leftovers.append(name)
    return tuple(leftovers)

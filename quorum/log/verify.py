"""Verify the files of a log in use: checksums of every batch, and the chain over all of them.

It is read-only and takes no locks, so that a worker can run it while the writer goes on. The
result is compared with the stored digests and with the digest in memory, which corruption on the
disk cannot have changed.

See: ADR 5.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from quorum.digest import EMPTY_LOG_DIGEST
from quorum.errors import LogDamagedError, StorageError
from quorum.log.config import LogConfig
from quorum.log.digest_file import read_digest_file
from quorum.log.epoch_file import EpochFile
from quorum.log.layout import segment_bases, segment_path
from quorum.log.scan import SegmentScan, scan_segment
from quorum.log.segment_tail import SegmentTail
from quorum.log.wrong_epoch import of_digest, of_fall
from quorum.ports import FileSystem
from quorum.types import DigestAt, Epoch


class Position(NamedTuple):
    """State of the log at an offset at which a batch ends."""

    epoch: Epoch
    """Epoch of the record before it; 0 if unknown."""
    digest: bytes
    """Log digest there; empty if unknown."""


class Verified(NamedTuple):
    """Amount of data read, and the first damage found."""

    batches: int
    size_bytes: int
    damage: LogDamagedError | None
    positions: Mapping[int, Position]
    """The wanted offsets at which a batch ends, as far as the log was read."""


@dataclass(slots=True)
class _Progress:
    report: Callable[[int], None] | None
    wanted: Collection[int]
    batches: int = 0
    size_bytes: int = 0
    positions: dict[int, Position] = field(default_factory=dict)

    def found(self, damage: LogDamagedError | None) -> Verified:
        return Verified(self.batches, self.size_bytes, damage, self.positions)

    def add(self, scan: SegmentScan) -> None:
        self.batches += scan.batch_count
        self.size_bytes += scan.tail.position
        for offset, tail in scan.tails.items():
            self.positions[offset] = Position(tail.epoch, tail.digest)


def verify_log(
    fs: FileSystem,
    directory: Path,
    end: DigestAt,
    *,
    config: LogConfig | None = None,
    wanted: Collection[int] = (),
    progress: Callable[[int], None] | None = None,
) -> Verified:
    """Verify the segments of ``directory`` up to ``end``, a batch boundary that is on disk.

    ``end.value`` is the running log's digest there; empty if it has none. Segments that are
    trimmed meanwhile are skipped. ``wanted`` are offsets whose position to report. ``progress``
    receives the bytes verified so far. Changes nothing.

    Raises:
        StorageError: The disk failed.
    """
    config = config or LogConfig()
    state = _Progress(progress, wanted)
    try:
        _verify(fs, directory, end, config, state)
    except LogDamagedError as damage:
        if not _is_gone(fs, damage):
            return state.found(damage)
    return state.found(None)


def _is_gone(fs: FileSystem, damage: LogDamagedError) -> bool:
    """Whether the damaged file has been removed: it was cut or trimmed meanwhile."""
    return not fs.exists(Path(str(damage.path)))


def _verify(
    fs: FileSystem, directory: Path, end: DigestAt, config: LogConfig, progress: _Progress
) -> None:
    bases = [base for base in segment_bases(fs.list_directory(directory)) if base < end.offset]
    tail: SegmentTail | None = None
    scan: SegmentScan | None = None
    for index, base in enumerate(bases):
        stored = EMPTY_LOG_DIGEST if base == 0 else read_digest_file(fs, directory, base) or b""
        if tail is None:
            tail = SegmentTail(base, 0, 0, stored)
        path = segment_path(directory, base)
        if tail.end_offset != base:
            raise LogDamagedError(
                f"a segment of base {base} follows", path=path, position=0, offset=tail.end_offset
            )
        if stored and tail.digest and stored != tail.digest:
            damage = LogDamagedError(
                "the log digest differs from the stored one",
                path=segment_path(directory, bases[index - 1]),
                position=tail.position,
                offset=bases[index - 1],
            )
            raise _named(fs, damage, bases[index - 1], scan)
        tail = tail._replace(position=0, unindexed_bytes=0, digest=tail.digest or stored)
        before = tail.epoch
        scan = _scan(fs, path, tail, end, config, progress)
        if scan is None:
            tail = None  # trimmed between listing and opening
            continue
        progress.add(scan)
        _check(fs, path, base, scan, end, before)
        tail = scan.tail
    if tail is not None and bases and tail.end_offset < end.offset:
        raise LogDamagedError(
            f"the log was on disk up to offset {end.offset} and ends here",
            path=segment_path(directory, bases[-1]),
            position=tail.position,
            offset=tail.end_offset,
        )


def _scan(
    fs: FileSystem,
    path: Path,
    tail: SegmentTail,
    end: DigestAt,
    config: LogConfig,
    progress: _Progress,
) -> SegmentScan | None:
    report, done = progress.report, progress.size_bytes
    try:
        file = fs.open(path)
    except StorageError:
        if fs.exists(path):
            raise
        return None
    try:
        return scan_segment(
            file,
            path,
            tail,
            window_bytes=config.scan_bytes,
            index_interval=config.index_interval_bytes,
            mark=end.offset,
            wanted=progress.wanted,
            progress=None if report is None else lambda here: report(done + here),
        )
    finally:
        file.close()


def _named(
    fs: FileSystem, damage: LogDamagedError, base: int, scan: SegmentScan | None, before: Epoch = -1
) -> LogDamagedError:
    """Return ``damage`` as that of the batch whose epoch is wrong, if it is one.

    ``before`` is the epoch before the segment if epochs fall behind ``scan``; -1: a digest differs.
    """
    path = Path(str(damage.path))
    if scan is None or not fs.exists(path):
        return damage
    stored = EpochFile(fs, path.parent).load() or ()
    file = fs.open(path)
    try:
        if before >= 0:
            return of_fall(damage, file, scan, before, stored)
        return of_digest(damage, file, base, scan, stored)
    finally:
        file.close()


def _check(
    fs: FileSystem, path: Path, base: int, scan: SegmentScan, end: DigestAt, before: Epoch
) -> None:
    """Check the result below ``end``; later bytes may be half written and do not count."""
    found = scan.tail
    if scan.digest_at_mark is not None:
        if end.value and scan.digest_at_mark and scan.digest_at_mark != end.value:
            damage = LogDamagedError(
                "the files have another log digest than was computed when they were written",
                path=path,
                position=found.position,
                offset=base,
            )
            raise _named(fs, damage, base, scan)
        return
    if scan.problem is not None:
        damage = LogDamagedError(
            f"damaged batch, {scan.problem.cause}",
            path=path,
            position=scan.problem.position,
            offset=found.end_offset,
        )
        raise _named(fs, damage, base, scan, before)
    if found.end_offset > end.offset:
        raise LogDamagedError(
            f"no batch ends at {end.offset}",
            path=path,
            position=found.position,
            offset=found.end_offset,
        )

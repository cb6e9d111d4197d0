"""Open all segments of a log in order, and verify that they form one log.

Between segments, offsets and log digests must match. The digest covers the header fields that no
batch checksum covers. At the stored durable end the digest must equal the stored one. Epochs above
it must begin with a leader change; so must all epochs if no digest is stored.

See: ADR 5 and 7.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from quorum.digest import EMPTY_LOG_DIGEST
from quorum.errors import LogDamagedError
from quorum.log.config import LogConfig
from quorum.log.damage import evaluate, find_batch
from quorum.log.digest_file import read_digest_file, write_digest_file
from quorum.log.epoch_evidence import (
    LogFacts,
    leader_change_contradictions,
    leader_changes,
    unproven_by_batches,
)
from quorum.log.epoch_file import EpochFile
from quorum.log.high_watermark_file import Watermarks
from quorum.log.layout import DIGEST_SUFFIX, segment_path
from quorum.log.log_start_file import LogStart
from quorum.log.scan import SegmentScan, scan_segment
from quorum.log.segment import Segment
from quorum.log.segment_tail import SegmentTail
from quorum.log.wrong_epoch import of_digest, of_fall
from quorum.ports import FileSystem
from quorum.types import Epoch, EpochStart

Progress = Callable[[int, int], None]
"""Receives the bytes done and the total."""


@dataclass(slots=True)
class Chain:
    """Segments opened so far. The caller closes them if opening fails."""

    segments: list[Segment] = field(default_factory=list)
    epochs: list[EpochStart] = field(default_factory=list)
    """Epoch changes in all segments, also below the log start."""
    byte_count: int = 0
    torn_bytes: int = 0
    torn_cause: str = ""
    rebuilt: list[str] = field(default_factory=list)
    """Names of digest files that were rewritten."""
    controls: dict[int, int] = field(default_factory=dict)
    """Position in its segment of every control batch, by base offset."""
    proven: range = range(0)
    """Offsets that a stored digest covers."""

    def close(self) -> None:
        """Release all files."""
        for segment in self.segments:
            segment.file.close()


class ChainOpener:
    """Opens the segments of one directory into a ``Chain``.

    ``anchors`` returns digests by offset from other files. It is called if a segment's own file
    has no digest for its base: digests are then known from the first anchor on.
    """

    def __init__(
        self,
        fs: FileSystem,
        directory: Path,
        config: LogConfig,
        *,
        marks: Watermarks,
        anchors: Callable[[], Mapping[int, bytes]] = dict,
        epoch_max: Epoch | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.chain = Chain()
        self._fs = fs
        self._directory = directory
        self._config = config
        self._marks = marks
        self._anchors = anchors
        self._epoch_max = epoch_max
        self._progress = progress
        self._start = LogStart()
        self._newest: SegmentScan | None = None
        self._known_from: int | None = None
        """Offset from which on the digest of the opened segments is known."""

    def open(self, bases: Sequence[int], stored: LogStart) -> None:
        """Open and verify the segments of ``bases``, ascending and not empty; cut a torn tail.

        Raises:
            LogDamagedError: Invalid bytes that are no torn tail, offsets that do not match, or a
                digest that differs from the stored one. No segment was changed.
            StorageError: A file could not be read.
        """
        total = sum(self._size(base) for base in bases)
        tail = self._first_tail(bases[0], stored)
        self._start = stored
        for base in bases:
            if base != tail.end_offset:
                raise self._damage(f"a segment of base {base} follows", tail.end_offset)
            tail = self._with_stored_digest(base, tail)
            anchors = {} if tail.digest else self._known_elsewhere()
            tail = tail._replace(digest=tail.digest or anchors.get(base, b""))
            scan = self._open_segment(base, tail, total, anchors, is_newest=base == bases[-1])
            self._check_mark(base, scan)
            tail = scan.tail._replace(position=0, unindexed_bytes=0)
        if self._epoch_max is not None:
            self._check_unproven_epochs(self._epoch_max)

    def _size(self, base: int) -> int:
        file = self._fs.open(segment_path(self._directory, base))
        try:
            return file.size()
        finally:
            file.close()

    def _first_tail(self, base: int, stored: LogStart) -> SegmentTail:
        start = stored.start
        # The epoch before a segment that begins below the log start is unknown; none is lower
        # than 0.
        epoch = start.epoch if base == start.offset else 0
        digest = stored.digest if base == start.offset else b""
        return SegmentTail(base, epoch, 0, EMPTY_LOG_DIGEST if base == 0 else digest)

    def _with_stored_digest(self, base: int, tail: SegmentTail) -> SegmentTail:
        """Return ``tail`` with the digest of the segment's digest file if it has none."""
        stored = read_digest_file(self._fs, self._directory, base)
        if stored is None:
            write_digest_file(self._fs, self._directory, base, tail.digest)
            self.chain.rebuilt.append(segment_path(self._directory, base, DIGEST_SUFFIX).name)
            return tail
        if not tail.digest:
            return tail._replace(digest=stored)
        if stored and stored != tail.digest:
            problem = "the log digest differs from the stored one"
            raise self._wrong_digest(self._damage(problem, tail.end_offset))
        if stored:
            self._extend_proof(tail.end_offset)
        return tail

    def _extend_proof(self, end_offset: int) -> None:
        """Note that the running digest was compared with a stored one at ``end_offset``."""
        if self._known_from is not None:
            self.chain.proven = range(self._known_from, end_offset)

    def _open_segment(
        self,
        base: int,
        tail: SegmentTail,
        total: int,
        anchors: Mapping[int, bytes],
        *,
        is_newest: bool,
    ) -> SegmentScan:
        path = segment_path(self._directory, base)
        file = self._fs.open(path, writable=True)
        segment = Segment(file, path, tail)
        chain = self.chain
        chain.segments.append(segment)
        if tail.digest and self._known_from is None:
            self._known_from = base
        progress, done = self._progress, chain.byte_count
        scan = scan_segment(
            file,
            path,
            tail,
            window_bytes=self._config.scan_bytes,
            index_interval=self._config.index_interval_bytes,
            mark=self._marks.durable_offset,
            anchors=anchors,
            progress=None if progress is None else lambda here: progress(done + here, total),
        )
        self._newest = scan
        segment.index, segment.tail, segment.anchor = scan.index, scan.tail, scan.anchor
        if scan.anchor is not None:
            self._known_from = scan.anchor.end_offset
        chain.epochs += scan.epochs
        chain.controls |= scan.controls
        chain.byte_count += scan.tail.position
        self._check_epochs(segment, scan)
        if scan.problem is not None:
            damage = evaluate(
                scan.problem,
                file,
                path,
                end_offset=scan.tail.end_offset,
                is_newest=is_newest,
                durable_offset=self._marks.durable_offset,
            )
            if damage is not None:
                raise of_fall(damage, file, scan, tail.epoch, self._stored_epochs())
            chain.torn_bytes = file.size() - scan.tail.position
            chain.torn_cause = scan.problem.cause
            file.truncate(scan.tail.position)
        return scan

    def _known_elsewhere(self) -> Mapping[int, bytes]:
        found = dict(self._anchors())
        if self._start.digest:
            found[self._start.start.offset] = self._start.digest
        return found

    def _check_epochs(self, segment: Segment, scan: SegmentScan) -> None:
        """Check epochs, which no checksum covers: none may exceed the highest voted epoch."""
        epoch_max = self._epoch_max
        for entry in scan.epochs:
            if epoch_max is not None and entry.epoch > epoch_max:
                batch = find_batch(segment.file, segment.path, 0, entry.start_offset)
                raise LogDamagedError(
                    f"a batch of epoch {entry.epoch}; this replica never got beyond {epoch_max}",
                    path=segment.path,
                    position=0 if batch is None else batch.position,
                    offset=entry.start_offset,
                )

    def _check_mark(self, base: int, scan: SegmentScan) -> None:
        marks = self._marks
        if not base < marks.durable_offset <= scan.tail.end_offset:
            return
        if scan.digest_at_mark is None:
            raise self._damage("no batch ends at the stored durable end", marks.durable_offset)
        if marks.digest and scan.digest_at_mark and marks.digest != scan.digest_at_mark:
            problem = "the log digest differs from the one stored with the durable end"
            raise self._wrong_digest(self._damage(problem, marks.durable_offset))
        if marks.digest and scan.digest_at_mark:
            self._extend_proof(marks.durable_offset)

    def _check_unproven_epochs(self, epoch_max: Epoch) -> None:
        """Check the epochs of batches that no stored digest covers.

        The first batch of a trimmed log may open an epoch or not, and a leader change does not
        name its epoch. So where an epoch has one batch, the epoch file is compared as well.
        """
        chain = self.chain
        proven = chain.proven
        first = chain.segments[0]
        begun = {first.base_offset: self._start.start.epoch} if first.tail.position else {}
        begun.update((each.start_offset, each.epoch) for each in chain.epochs)
        controls = {at: place for at, place in chain.controls.items() if at not in proven}
        facts = LogFacts(chain.segments, begun, controls)
        stored = self._stored_epochs()
        for found in (
            *leader_change_contradictions(facts, leader_changes(facts)),
            *unproven_by_batches(facts, stored, epoch_max),
        ):
            if found.offset in proven:
                continue
            # All batches from the first suspect to here have one epoch; a proven one proves it.
            is_proven = proven and found.first_suspect < proven.stop <= found.offset
            suspect = proven.stop if is_proven else found.first_suspect
            segment = [each for each in chain.segments if each.base_offset <= suspect][-1]
            batch = find_batch(segment.file, segment.path, 0, suspect)
            raise LogDamagedError(
                f"at offset {found.offset}: {found.cause}",
                path=segment.path,
                position=0 if batch is None else batch.position,
                offset=suspect,
            )

    def _stored_epochs(self) -> Sequence[EpochStart]:
        return EpochFile(self._fs, self._directory).load() or ()

    def _wrong_digest(self, damage: LogDamagedError) -> LogDamagedError:
        """Return it as that of the newest segment's batch with the wrong epoch, if it is one."""
        if self._newest is None:
            return damage
        segment = self.chain.segments[-1]
        base = segment.base_offset
        return of_digest(damage, segment.file, base, self._newest, self._stored_epochs())

    def _damage(self, cause: str, offset: int) -> LogDamagedError:
        """Return an error for damage in the newest segment opened."""
        if not self.chain.segments:
            return LogDamagedError(cause, path=self._directory, position=0, offset=offset)
        segment = self.chain.segments[-1]
        return LogDamagedError(
            cause, path=segment.path, position=segment.tail.position, offset=offset
        )

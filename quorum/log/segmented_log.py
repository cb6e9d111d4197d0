"""The replicated log on disk: ``ports.LogStore`` over segment files.

It chooses the segment of an operation and the order of durable steps. ``segment`` handles the
bytes of a segment, ``retention`` removals, and ``recovery`` opens the log after a crash.

Invariants:
    1. Only the newest segment has data that is not durable.
    2. A segment's name is durable before the segment is written to.
    3. The stored log start is never above what is durable, and never falls.
    4. The stored durable end is lowered, durably, before the log is cut.
    5. After a failed write or sync there are no further writes (a failed sync may have dropped
       data).

See: docs/reference/formats.md, ADR 5 and 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from quorum.batch import BatchHeader
from quorum.errors import (
    QuorumUsageError,
    StorageError,
    invariant,
)
from quorum.log.append_checks import check_epochs, checked_headers
from quorum.log.config import LogConfig
from quorum.log.failure import Failure
from quorum.log.high_watermark_file import Watermarks
from quorum.log.history import clip_start, cut_end
from quorum.log.log_files import LogFiles
from quorum.log.log_start_file import LogStart
from quorum.log.quarantine_mark_file import QuarantineMark, write_quarantine_mark
from quorum.log.recent_digests import RecentDigests
from quorum.log.retention import create_segment, finish_replacement, remove_covered, remove_cut
from quorum.log.segment import Segment
from quorum.log.segment_list import SegmentList
from quorum.log.segment_tail import extend
from quorum.types import DigestAt, EpochStart, OffsetAndEpoch, SnapshotId


class SegmentedLog:
    """The log of one replica; created by ``recovery.open_log``.

    Owned by the writer thread. Any thread may use ``read``, ``digest_at`` and the properties; they
    include written data that is not flushed yet.
    """

    def __init__(
        self,
        files: LogFiles,
        config: LogConfig,
        segments: Sequence[Segment],
        start: OffsetAndEpoch,
        epochs: Sequence[EpochStart],
    ) -> None:
        self._files = files
        self._config = config
        self._segments = SegmentList(segments)
        self._start = start
        self._epochs = tuple(epochs)
        self._recent = RecentDigests()
        self._has_unsaved_epochs = False
        self._is_dirty = False
        self._failure = Failure()

    @property
    def start(self) -> OffsetAndEpoch:
        """First kept offset and the epoch of the record before it."""
        return self._start

    @property
    def end(self) -> OffsetAndEpoch:
        """Written end (exclusive) and the epoch of the last record (or of ``start``)."""
        return self._segments.active.tail.end

    @property
    def epochs(self) -> tuple[EpochStart, ...]:
        """The epoch history of the records in the log, ascending."""
        return self._epochs

    @property
    def high_watermark(self) -> int:
        """The stored lower bound."""
        return self._files.marks.high_watermark

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments."""
        return self._segments.size_bytes

    def covered_bytes(self, start_offset: int, *, beside: int = 0) -> int:
        """Return the bytes that moving the log start up to ``start_offset`` would free.

        Bytes that moving it up to ``beside`` would free are not counted.
        """
        return self._segments.bytes_ending_in(beside, start_offset)

    @property
    def segment_bases(self) -> tuple[int, ...]:
        """Base offsets of the segments, ascending."""
        return self._segments.bases

    # ------------------------------------------------------------------ writing

    def append(
        self,
        data: bytes,
        *,
        base_offset: int,
        end_offset: int,
        epochs: Sequence[EpochStart] = (),
        headers: Sequence[BatchHeader] = (),
    ) -> None:
        """Write whole batches covering [base_offset, end_offset); not durable before ``flush``.

        ``epochs`` is a cross-check: an epoch above the log's must start where the batches have
        it. ``headers`` are what ``scan_batches`` returned for ``data``, which is then not scanned
        again.

        Raises:
            QuorumUsageError: Not at the log's end, empty, or arguments that contradict the
                batches. The log is unchanged.
            CorruptBatchError: ``data`` is not whole, joining batches. The log is unchanged.
            DiskFullError: No space; the log is unchanged.
            StorageError: Any other failure, or the log failed before.
        """
        self._check_usable()
        headers = checked_headers(
            self._segments.active.tail, data, headers, base_offset, end_offset
        )
        active = self._segments.active
        position = active.tail.position
        if position and position + len(data) > self._config.segment_bytes:
            active = self._roll()
        boundaries: dict[int, bytes] = {}
        extension = extend(
            active.tail,
            memoryview(data),
            headers,
            index_interval=self._config.index_interval_bytes,
            boundaries=boundaries,
        )
        if extension.epochs or (epochs and epochs[-1].epoch > active.tail.epoch):
            check_epochs(epochs, extension.epochs, known=active.tail.epoch)
        with self._failure.unless_full:
            active.append(data, extension)
        self._recent.add(boundaries)
        self._is_dirty = True
        if extension.epochs or not self._epochs:
            # The first record behind a snapshot may continue the epoch of the record before it.
            self._epochs = clip_start(
                (*self._epochs, *extension.epochs), self._start, end_offset=end_offset
            )
            self._has_unsaved_epochs = True

    def _roll(self) -> Segment:
        """Seal the newest segment and create another behind it.

        Raises:
            DiskFullError: The log is unchanged.
        """
        sealed = self._segments.active
        with self._failure.unless_full:
            if self._is_dirty:
                sealed.file.sync()
                self._is_dirty = False
            files = self._files
            files.write_index(sealed)
            segment = create_segment(files.fs, files.directory, sealed.tail)
        self._segments.add(segment)
        return segment

    def flush(self) -> None:
        """Make all written data durable.

        Raises:
            StorageError: Its durability is unknown; the log refuses all further work.
        """
        self._check_usable()
        with self._failure:
            if self._is_dirty:
                self._segments.active.file.sync()
                self._is_dirty = False
            if self._has_unsaved_epochs:
                self._has_unsaved_epochs = not self._files.save_epochs(self._epochs)
            self._files.raise_durable_end(self._segments.active.tail)

    def store_high_watermark(self, high_watermark: int) -> None:
        """Store the bounds durably: this high watermark, if it is higher, and the flushed end.

        From then on, corruption below that end is recognised as damage after any power loss.

        Raises:
            StorageError: The bounds may not be on disk; the log refuses all further work.
        """
        self._check_usable()
        watermarks = self._files.watermarks
        raised = max(high_watermark, watermarks.marks.high_watermark)
        with self._failure.unless_full:
            watermarks.secure(replace(watermarks.marks, high_watermark=raised))

    # ------------------------------------------------------------------ cutting

    def truncate_to(self, end_offset: int) -> None:
        """Cut to ``end_offset``, a batch boundary; the cut is durable on return.

        Raises:
            QuorumUsageError: Outside the log or not a batch boundary. The log is unchanged.
            InvariantViolation: Below the stored high watermark (requirement 279.4).
            StorageError: At any step; the log is then a prefix between the old and the new end.
        """
        self._check_usable()
        end = self.end
        if end_offset == end.offset:
            return
        if not self._start.offset <= end_offset < end.offset:
            raise QuorumUsageError(
                f"truncation to {end_offset} of a log from {self._start.offset} to {end.offset}"
            )
        marks = self._files.marks
        invariant(
            end_offset >= marks.high_watermark,
            "truncation below the high watermark",
            end_offset=end_offset,
            high_watermark=marks.high_watermark,
            log_end=end,
        )
        target = self._segments.containing(end_offset)
        tail = target.tail_at(end_offset)
        files = self._files
        with self._failure:
            files.lower_durable_end(tail.end, tail.digest)
            while self._segments.active is not target:
                newest = self._segments.drop_newest()
                remove_cut(files.fs, files.directory, newest.base_offset)
            with self._segments.excluding_readers():
                target.cut(tail)
                self._recent.clear()
            target.file.sync()
            self._is_dirty = False
            files.drop_index(target)
            self._epochs = cut_end(self._epochs, end_offset)
            # Now, not with the next flush: an entry that is left would contradict a later epoch
            # that begins at the same offset.
            self._has_unsaved_epochs = not files.save_epochs(self._epochs)

    def replace_with(self, snapshot_id: SnapshotId, *, digest: bytes = b"") -> None:
        """Empty the log: start = end = the snapshot's position.

        ``digest`` is the log digest at that position, from the snapshot's header; without it,
        later digests are unknown.

        Durability: on return. Once the plan is stored, recovery finishes it.

        Raises:
            StorageError: Before or after the plan was stored.
        """
        self._check_usable()
        files = self._files
        plan = LogStart(snapshot_id, digest, is_replacing=True)
        with self._failure.unless_full:
            files.lower_durable_end(snapshot_id, b"")
            files.start.save(plan)
        with self._failure:
            segment = finish_replacement(files.fs, files.directory, files.start, plan)
            self._start = snapshot_id
            self._segments.replace_all(segment)
            self._recent.clear()
            self._is_dirty = False
            self._epochs = ()
            self._has_unsaved_epochs = not files.save_epochs(self._epochs)
            files.watermarks.store(
                Watermarks(snapshot_id.offset, snapshot_id.offset, snapshot_id.epoch, digest)
            )

    def advance_start(self, start: OffsetAndEpoch) -> None:
        """Raise the log start (stored durably first), then delete segments wholly below it.

        A start at or below the present one changes nothing: the start never falls.

        Raises:
            QuorumUsageError: Above the log's end, inside a batch, or with an epoch that differs
                from that of the record before it. Nothing has changed.
            DiskFullError: No space to store it; nothing has changed.
            StorageError: Any other failure; recovery finishes the removal.
        """
        self._check_usable()
        if start.offset <= self._start.offset:
            return
        end = self.end
        if start.offset > end.offset:
            raise QuorumUsageError(f"log start {start} above the log end {end}")
        tail = self._segments.tail_at(start.offset)
        if tail.epoch != start.epoch:
            raise QuorumUsageError(f"log start {start} behind a record of epoch {tail.epoch}")
        if start.offset > self._files.marks.durable_offset:
            self.flush()
        files = self._files
        with self._failure.unless_full:
            files.start.save(LogStart(start, tail.digest))
        with self._failure:
            self._start = start
            self._epochs = clip_start(self._epochs, start, end_offset=end.offset)
            self._has_unsaved_epochs = True
            bases = self._segments.drop_below(start.offset)
            if bases:
                remove_covered(files.fs, files.directory, bases)

    # ------------------------------------------------------------------ reading

    def read(self, offset: int, max_bytes: int, *, end_offset: int | None = None) -> bytes:
        """Return whole batches of one segment, from the one containing ``offset`` on.

        At least one if any ends at or below ``end_offset``; otherwise no more than
        ``max_bytes``. Empty at the log's end.

        Raises:
            QuorumUsageError: ``offset`` is below the log start.
            StorageError: The file is unreadable or corrupt.
        """
        if offset < self._start.offset:
            raise QuorumUsageError(f"read at {offset}, below log start {self._start.offset}")
        return self._segments.read(offset, max_bytes, end_offset)

    def digest_at(self, offset: int, *, prove: bool = False) -> bytes:
        """Return the running digest of all records below ``offset``; empty if unknown.

        It is unknown outside the log, and known for every boundary in it if it is known at the
        first base.

        Raises:
            StorageError: The file is unreadable, or the part read is corrupt (with ``prove``,
                checked by its checksums).
        """
        if offset < self._start.offset:
            return b""
        recent = self._recent.get(offset)
        if recent is not None:
            return recent
        if offset > self._segments.active.tail.end_offset:
            return b""
        return self._segments.digest_at(offset, prove=prove)

    def digest_before(self, offset: int) -> DigestAt:
        """Return the digest at the last boundary at or below ``offset``; (-1, empty) for none.

        Equal logs return equal digests for every offset, so two logs can be compared by bisection.

        Raises:
            StorageError: The file is unreadable or corrupt.
        """
        return self._segments.digest_before(offset, self._start.offset)

    @property
    def tip(self) -> tuple[OffsetAndEpoch, bytes]:
        """The written end and the digest there, read at one moment."""
        tail = self._segments.active.tail
        return tail.end, tail.digest

    def quarantine(self, offset: int, cause: str) -> None:
        """Mark the log from ``offset`` on to be set aside at the next opening. Durable."""
        with self._failure:
            files = self._files
            write_quarantine_mark(files.fs, files.directory, QuarantineMark(offset, cause))

    # ------------------------------------------------------------------ life-cycle

    def close(self) -> None:
        """Flush unless the log has failed, and release all files."""
        if not self._failure.cause:
            self.flush()
            self._files.write_index(self._segments.active)
            self._failure.cause = "the log is closed"
        self._segments.close()
        self._files.watermarks.close()

    def _check_usable(self) -> None:
        if self._failure.cause:
            raise StorageError(f"not usable: {self._failure.cause}", self._files.directory)

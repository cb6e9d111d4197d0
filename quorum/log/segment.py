"""One segment: a file of whole record batches at contiguous offsets, with its sparse index.

A segment does not know its neighbours: ``segmented_log`` rolls, truncates across segments and
orders durable steps. The index has the position to start reading at. A scan of the headers of one
index interval finds the exact batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from quorum.batch import BatchHeader, check_crc, peek_size, read_header
from quorum.digest import fold
from quorum.errors import CorruptBatchError, QuorumUsageError
from quorum.log.index import IndexEntry, OffsetIndex
from quorum.log.segment_tail import Extension, SegmentTail
from quorum.ports import File
from quorum.types import DigestAt, Epoch

_SCAN_BYTES = 8192
"""Bytes read at once when scanning headers: slightly more than an index interval."""


class Segment:
    """An open segment file.

    The writer thread appends and cuts. Other threads may read while it appends, never while it
    cuts: ``tail`` is replaced as a whole once the bytes before it are in the file.
    """

    __slots__ = (
        "anchor",
        "base_digest",
        "base_epoch",
        "base_offset",
        "file",
        "index",
        "path",
        "tail",
    )

    def __init__(
        self,
        file: File,
        path: Path,
        base: SegmentTail,
        index: OffsetIndex | None = None,
        tail: SegmentTail | None = None,
    ) -> None:
        self.file = file
        self.path = path
        self.base_offset = base.end_offset
        self.base_epoch: Epoch = base.epoch
        """Epoch of the record before the segment."""
        self.base_digest = base.digest
        self.anchor: SegmentTail | None = None
        """Position from which on the digest is known, if it is unknown at the base."""
        self.index = index or OffsetIndex(self.base_offset)
        self.tail = tail or base

    def append(self, data: bytes, extension: Extension) -> None:
        """Write whole batches for which ``extend`` returned ``extension``.

        Raises:
            DiskFullError: No space; nothing has changed.
            StorageError: A part may be in the file; the log must not be used further.
        """
        self.file.append(data)
        for entry in extension.entries:
            self.index.add(entry)
        self.tail = extension.tail

    def read(self, offset: int, max_bytes: int, end_offset: int) -> bytes:
        """Return whole batches of this segment, from the one containing ``offset`` on.

        At least one; otherwise no more than ``max_bytes``, and none that ends above
        ``end_offset``. Empty if there is no such batch.

        Raises:
            CorruptBatchError: The batch is missing because the file is corrupt.
        """
        tail = self.tail
        found = self.locate(offset, tail)
        if found is None or found[1].end_offset > end_offset:
            if offset < min(end_offset, tail.end_offset):
                # Inside a batch that ends later, or the file is corrupt.
                self._prove_up_to(offset, tail)
            return b""
        position, first = found
        stop = self._stop_position(position, first.size, max_bytes, end_offset, tail)
        return self.file.read_at(position, stop - position)

    def _stop_position(
        self, position: int, size: int, max_bytes: int, end_offset: int, tail: SegmentTail
    ) -> int:
        """Return where to stop a read of at least the ``size`` bytes at ``position``."""
        limit = position + max_bytes
        if tail.end_offset <= end_offset and tail.position <= limit:
            return tail.position
        stop = position + size
        skip = self.index.floor_position(limit)
        if (entry := self.index.floor(end_offset - 1)) is not None:
            skip = min(skip, entry.position)
        elif tail.end_offset > end_offset:
            skip = 0
        for position, header, _ in self._scan(max(stop, skip), tail.position):
            stop = position
            if header.end_offset > end_offset or position + header.size > limit:
                return stop
            stop += header.size
        return stop

    def locate(self, offset: int, tail: SegmentTail) -> tuple[int, BatchHeader] | None:
        """Return position and header of the batch that contains ``offset``; None behind the end."""
        if not self.base_offset <= offset < tail.end_offset:
            return None
        entry = self.index.floor(offset)
        for position, header, _ in self._scan(entry.position if entry else 0, tail.position):
            if offset < header.end_offset:
                return position, header
        return None

    def _prove_up_to(self, offset: int, tail: SegmentTail) -> None:
        for _, header, _ in self._scan_from(self.index.floor(offset), tail.position, prove=True):
            if offset < header.end_offset:
                return

    def digest_at(self, offset: int, *, prove: bool = False) -> bytes:
        """Return the log digest below ``offset``; empty if unknown or inside a batch.

        ``prove``: verify the bytes read for it by checksums and offsets.
        """
        tail = self.tail
        if offset == tail.end_offset:
            return tail.digest
        end = self._tail_at(offset, tail, prove=prove)
        return end.digest if end is not None else b""

    def digest_before(self, offset: int) -> DigestAt:
        """Return the digest at the last batch boundary at or below ``offset`` in this segment."""
        tail = self.tail
        if offset >= tail.end_offset:
            return DigestAt(tail.end_offset, tail.digest)
        found = self.locate(offset, tail)
        boundary = self.base_offset if found is None else found[1].base_offset
        return DigestAt(boundary, self.digest_at(boundary))

    def tail_at(self, end_offset: int) -> SegmentTail:
        """Return the state that this segment had when it ended at ``end_offset``.

        Raises:
            QuorumUsageError: No batch ends there.
            CorruptBatchError: The batch is missing because the file is corrupt.
        """
        # Verified, because files are cut here and a corrupt header may name this very end.
        newest = self.tail
        tail = self._tail_at(end_offset, newest, prove=True)
        if tail is None:
            raise QuorumUsageError(
                f"{self.path}: offset {end_offset} is not a batch boundary in "
                f"{self.base_offset} to {newest.end_offset}"
            )
        if tail.digest:
            self._prove_digest(tail, newest)
        return tail

    def _prove_digest(self, tail: SegmentTail, newest: SegmentTail) -> None:
        """Verify up to the next known digest, because epochs are outside checksums."""
        known = self.index.ceiling(tail.position) or newest
        digest = tail.digest
        scan = self._scan(tail.position, known.position, prove=True, begins=tail.end_offset)
        for _, _, batch in scan:
            digest = fold(digest, batch)
        if digest != known.digest:
            cause = f"the batches around offset {tail.end_offset} have another digest than before"
            raise CorruptBatchError(cause, path=self.path, position=tail.position)

    def _tail_at(
        self, offset: int, tail: SegmentTail, *, prove: bool = False
    ) -> SegmentTail | None:
        digest, indexed = self.base_digest, 0
        if offset == self.base_offset:
            return SegmentTail(offset, self.base_epoch, 0, digest)
        anchor = self.anchor
        if (entry := self.index.floor(offset - 1)) is not None:
            indexed = entry.position
            is_known = digest or (anchor is not None and anchor.position <= indexed)
            digest = entry.digest if is_known else b""
        if not digest and anchor is not None and anchor.end_offset <= offset:
            # The scan below would start at or before the anchor: start at the anchor instead.
            return self._tail_behind(anchor, offset, tail, indexed, prove=prove)
        for position, header, batch in self._scan_from(entry, tail.position, prove=prove):
            if header.end_offset > offset:
                break
            if digest:
                digest = fold(digest, batch)
            if header.end_offset == offset:
                end = position + header.size
                return SegmentTail(offset, header.epoch, end, digest, end - indexed)
        return None

    def _tail_behind(
        self, anchor: SegmentTail, offset: int, tail: SegmentTail, indexed: int, *, prove: bool
    ) -> SegmentTail | None:
        """As ``_tail_at``, from the anchor on, where the digest is known again."""
        end, epoch, digest = anchor.position, anchor.epoch, anchor.digest
        end_offset = anchor.end_offset
        scan = self._scan(anchor.position, tail.position, prove=prove, begins=end_offset)
        for position, header, batch in scan:
            if header.end_offset > offset:
                break
            digest = fold(digest, batch)
            end_offset, epoch, end = header.end_offset, header.epoch, position + header.size
        return (
            SegmentTail(offset, epoch, end, digest, end - indexed) if end_offset == offset else None
        )

    def _scan_from(
        self, entry: IndexEntry | None, end: int, *, prove: bool
    ) -> Iterator[tuple[int, BatchHeader, memoryview]]:
        """As ``_scan``, from an entry of the index on, or from the beginning.

        With ``prove`` also check the end of the entry's batch: offsets are outside checksums, and
        the scan reads no earlier batch that would have to join it.
        """
        start = entry.position if entry else 0
        for position, header, batch in self._scan(start, end, prove=prove):
            if prove and entry is not None and header.end_offset != entry.last_offset + 1:
                cause = f"end offset {header.end_offset} where it was {entry.last_offset + 1}"
                raise CorruptBatchError(cause, path=self.path, position=position)
            entry = None
            yield position, header, batch

    def _scan(
        self, position: int, end: int, *, prove: bool = False, begins: int | None = None
    ) -> Iterator[tuple[int, BatchHeader, memoryview]]:
        """Yield start, header and bytes of each batch in the file's [position, end).

        With ``prove`` also check the checksums, and that each batch begins where the one before
        ends; the first one at ``begins`` if that is given.

        Raises:
            CorruptBatchError: The bytes were valid when written or scanned, and no longer are.
        """
        if position >= end:
            return
        base, wanted = position, min(_SCAN_BYTES, end - position)
        window = memoryview(self.file.read_at(position, wanted))
        before_end = self.base_offset if position == 0 else begins
        while position < end:
            at = position - base
            try:
                header = read_header(window, at, path=self.path, base_position=base)
            except CorruptBatchError:
                size = peek_size(window, at, path=self.path, base_position=base)
                before, wanted = wanted, min(max(size or 0, _SCAN_BYTES), end - position)
                if base == position and wanted <= before:
                    raise
                # Only the window ends inside the batch.
                base, window = position, memoryview(self.file.read_at(position, wanted))
                continue
            if prove:
                check_crc(window, header, path=self.path, base_position=base)
                if before_end not in (None, header.base_offset):
                    cause = f"base offset {header.base_offset} where {before_end} follows"
                    raise CorruptBatchError(cause, path=self.path, position=position)
                before_end = header.end_offset
            yield position, header, window[at : at + header.size]
            position += header.size

    def cut(self, tail: SegmentTail) -> None:
        """Truncate the file to ``tail``, a result of ``tail_at``. Not durable before ``sync``."""
        self.file.truncate(tail.position)
        self.index.cut(tail.position)
        if self.anchor is not None and tail.position < self.anchor.position:
            self.anchor = None
        self.tail = tail

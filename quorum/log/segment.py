"""One segment: a file of whole record batches at contiguous offsets, with its sparse index.

Knows its own bytes and nothing of its neighbours; rolling, truncation across segments and
durability order are ``segmented_log``'s. The index answers where to start reading, and a walk
over the headers of one index interval finds the exact batch.
"""

from __future__ import annotations

from pathlib import Path

from quorum.batch import HEADER_BYTES, BatchHeader, peek_size, read_header
from quorum.digest import fold
from quorum.errors import QuorumUsageError
from quorum.log.index import OffsetIndex
from quorum.log.trail import Extension, Trail
from quorum.ports import File
from quorum.types import Epoch

_WALK_BYTES = 8192
"""Read at once when walking headers: an index interval and a little more."""


class Segment:
    """An open segment file.

    The writer thread appends and cuts. Others may read while it appends, never while it cuts:
    ``trail`` is replaced as a whole once the bytes before it are in the file.
    """

    __slots__ = ("base_digest", "base_epoch", "base_offset", "file", "index", "path", "trail")

    def __init__(
        self,
        file: File,
        path: Path,
        base: Trail,
        index: OffsetIndex | None = None,
        trail: Trail | None = None,
    ) -> None:
        self.file = file
        self.path = path
        self.base_offset = base.end_offset
        self.base_epoch: Epoch = base.epoch
        """Epoch of the record before the segment."""
        self.base_digest = base.digest
        self.index = index or OffsetIndex(self.base_offset)
        self.trail = trail or base

    def append(self, data: bytes, extension: Extension) -> None:
        """Write whole batches that were followed from ``trail``.

        Raises:
            DiskFullError: No space; nothing has changed.
            StorageError: Some of it may be in the file; the log must not be used further.
        """
        self.file.append(data)
        for entry in extension.entries:
            self.index.add(entry)
        self.trail = extension.trail

    def read(self, offset: int, max_bytes: int, end_offset: int) -> bytes:
        """Whole batches from the one containing ``offset`` on, in this segment.

        At least one; otherwise no more than ``max_bytes``, and none that ends above
        ``end_offset``. Empty when there is no such batch.
        """
        trail = self.trail
        start = self._find(offset, trail)
        if start is None or start.end_offset > end_offset:
            return b""
        stop = self._stop_position(start, max_bytes, end_offset, trail)
        return self.file.read_at(start.position, stop - start.position)

    def _stop_position(
        self, start: BatchHeader, max_bytes: int, end_offset: int, trail: Trail
    ) -> int:
        limit = start.position + max_bytes
        if trail.end_offset <= end_offset and trail.position <= limit:
            return trail.position
        stop = start.end_position
        skip = self.index.floor_position(limit)
        if (entry := self.index.floor(end_offset - 1)) is not None:
            skip = min(skip, entry.position)
        elif trail.end_offset > end_offset:
            skip = 0
        walk = HeaderWalk(self, max(stop, skip), trail.position)
        while (header := walk.next()) is not None:
            if header.end_offset > end_offset or header.end_position > limit:
                return header.position
            stop = header.end_position
        return stop

    def _find(self, offset: int, trail: Trail) -> BatchHeader | None:
        """The batch that contains ``offset``; None behind the end."""
        if not self.base_offset <= offset < trail.end_offset:
            return None
        entry = self.index.floor(offset)
        walk = HeaderWalk(self, entry.position if entry else 0, trail.position)
        while (header := walk.next()) is not None:
            if offset < header.end_offset:
                return header
        return None

    def digest_at(self, offset: int) -> bytes:
        """Log digest below ``offset``; empty when not known or inside a batch."""
        trail = self.trail
        if offset == trail.end_offset:
            return trail.digest
        end = self._trail_at(offset, trail)
        return end.digest if end is not None else b""

    def trail_at(self, end_offset: int) -> Trail:
        """The state this segment had when it ended at ``end_offset``.

        Raises:
            QuorumUsageError: No batch ends there.
        """
        trail = self._trail_at(end_offset, self.trail)
        if trail is None:
            raise QuorumUsageError(
                f"{self.path}: offset {end_offset} is not a batch boundary in "
                f"{self.base_offset} to {self.trail.end_offset}"
            )
        return trail

    def _trail_at(self, offset: int, trail: Trail) -> Trail | None:
        digest, position = self.base_digest, 0
        if offset == self.base_offset:
            return Trail(offset, self.base_epoch, 0, digest)
        if (entry := self.index.floor(offset - 1)) is not None:
            position = entry.position
            digest = entry.digest if digest else b""
        indexed = position
        walk = HeaderWalk(self, position, trail.position)
        while (header := walk.next()) is not None and header.end_offset <= offset:
            if digest:
                digest = fold(digest, walk.bytes_of(header))
            if header.end_offset == offset:
                end = header.end_position
                return Trail(offset, header.epoch, end, digest, end - indexed)
        return None

    def cut(self, trail: Trail) -> None:
        """Shorten the file to ``trail``, one of ``trail_at``. Not durable before ``sync``."""
        self.file.truncate(trail.position)
        self.index.cut(trail.position)
        self.trail = trail


class HeaderWalk:
    """Steps from batch to batch through ``[position, end)`` of a segment, reading in pieces."""

    def __init__(self, segment: Segment, position: int, end: int) -> None:
        self._segment = segment
        self._position = position
        self._end = end
        self._window = b""
        self._base = position

    def next(self) -> BatchHeader | None:
        """The next batch with its position in the file; None at the end.

        Raises:
            CorruptBatchError: What was proven when written or scanned is there no longer.
        """
        if self._position >= self._end:
            return None
        path = self._segment.path
        at = self._position - self._base
        size = peek_size(self._window, at, path=path, base_position=self._base)
        if size is None or at + size > len(self._window):
            self._refill(size or HEADER_BYTES)
            at = 0
            size = peek_size(self._window, 0, path=path, base_position=self._base)
            if size is not None and size > len(self._window):
                self._refill(size)
        header = read_header(self._window, at, path=path, base_position=self._base)
        self._position += header.size
        return header._replace(position=self._base + at)

    def _refill(self, least: int) -> None:
        self._base = self._position
        wanted = min(max(least, _WALK_BYTES), self._end - self._base)
        self._window = self._segment.file.read_at(self._base, wanted)

    def bytes_of(self, header: BatchHeader) -> memoryview:
        """The whole batch last returned by ``next``."""
        at = header.position - self._base
        return memoryview(self._window)[at : at + header.size]

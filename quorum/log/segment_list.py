"""The segments of a log, shared between the writer and readers on other threads.

The list is replaced as a whole. Readers hold the lock while they use a file. The writer takes it
only to cut a file, or to remove and close files, so appends never wait.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from quorum.log.segment import Segment
from quorum.log.segment_tail import SegmentTail
from quorum.types import DigestAt


class SegmentList:
    """Segments: never empty, contiguous, ascending. Only the writer thread may change the list."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        self._segments = tuple(segments)
        self._bases = tuple(segment.base_offset for segment in segments)
        self._lock = threading.Lock()
        self.active = self._segments[-1]
        """The newest segment, which appends go to."""

    @property
    def bases(self) -> tuple[int, ...]:
        """Base offsets, ascending."""
        return self._bases

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments."""
        return sum(segment.tail.position for segment in self._segments)

    def bytes_ending_in(self, above: int, to: int) -> int:
        """Return the bytes of the segments that end in (above, to], except the newest one."""
        older = self._segments[:-1]
        return sum(s.tail.position for s in older if above < s.tail.end_offset <= to)

    def containing(self, offset: int) -> Segment:
        """Return the segment for ``offset``, which is at or above the first base."""
        return self._segments[max(bisect_right(self._bases, offset) - 1, 0)]

    def read(self, offset: int, max_bytes: int, end_offset: int | None) -> bytes:
        """Return whole batches of one segment, from the one containing ``offset`` on."""
        with self._lock:
            segment = self.containing(offset)
            limit = segment.tail.end_offset if end_offset is None else end_offset
            return segment.read(offset, max_bytes, limit)

    def digest_at(self, offset: int, *, prove: bool = False) -> bytes:
        """Return the log digest below ``offset``; empty if unknown or not a batch boundary."""
        with self._lock:
            return self.containing(offset).digest_at(offset, prove=prove)

    def digest_before(self, offset: int, start_offset: int) -> DigestAt:
        """Return the digest at the last boundary at or below ``offset``; (-1, empty) for none."""
        with self._lock:
            if offset >= start_offset:
                segment = self.containing(offset)
                found = segment.digest_before(offset)
                if found.offset >= start_offset and found.value:
                    return found
            return DigestAt(-1, b"")

    def position_of(self, offset: int) -> int | None:
        """Return where in its file the batch begins whose base offset this is; None for none."""
        with self._lock:
            segment = self.containing(offset)
            found = segment.locate(offset, segment.tail)
            return found[0] if found is not None and found[1].base_offset == offset else None

    def tail_at(self, end_offset: int) -> SegmentTail:
        """Return the state of a segment that ends at ``end_offset``.

        Raises:
            QuorumUsageError: No batch ends there.
        """
        return self.containing(end_offset).tail_at(end_offset)

    @contextmanager
    def excluding_readers(self) -> Iterator[None]:
        """Exclude readers while a file is cut."""
        with self._lock:
            yield

    def add(self, segment: Segment) -> None:
        """Add a new newest segment."""
        self._replace((*self._segments, segment))

    def drop_newest(self) -> Segment:
        """Remove, close and return the newest segment."""
        newest = self._segments[-1]
        self._replace(self._segments[:-1])
        return newest

    def drop_below(self, offset: int) -> tuple[int, ...]:
        """Remove and close the segments wholly below ``offset``; return their base offsets."""
        kept = self._segments.index(self.containing(offset))
        gone = self._bases[:kept]
        if gone:
            self._replace(self._segments[kept:])
        return gone

    def replace_all(self, segment: Segment) -> None:
        """Replace all segments by ``segment``; the old ones are closed."""
        self._replace((segment,))

    def _replace(self, segments: tuple[Segment, ...]) -> None:
        with self._lock:
            gone = [segment for segment in self._segments if segment not in segments]
            self._segments = segments
            self.active = segments[-1]
            self._bases = tuple(segment.base_offset for segment in segments)
            for segment in gone:
                segment.file.close()

    def close(self) -> None:
        """Release all files."""
        with self._lock:
            for segment in self._segments:
                segment.file.close()

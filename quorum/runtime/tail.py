"""The newest end of the log in memory: appended batches that may not be on disk yet.

A leader serves records to replicas before its own fsync has finished (ADR 7), and most Fetches
request recent appends. The tail holds everything from ``start_offset`` on; the log's files hold
the rest.

Owned by the event loop. The writer thread never uses it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from struct import Struct

from quorum.batch import BatchHeader
from quorum.errors import invariant, violation
from quorum.runtime.verified_batches import VerifiedTail

TAIL_BYTES_MAX = 64 << 20
"""Above this size, durable bytes are dropped, oldest first. Bytes that are not durable always
stay; ``QuorumConfig.uncommitted_bytes_max`` bounds them."""

_COMPACT_AT = 1024
_BASE_AND_LENGTH = Struct(">qi")
_LENGTH_OVERHEAD = 12
_HEADER_BYTES = 61


class _Group:
    """Whole batches appended together. They are indexed on first use."""

    __slots__ = ("_batch_bases", "_positions", "base_offset", "data", "end_offset")

    def __init__(self, data: bytes, base_offset: int, end_offset: int) -> None:
        self.data = data
        self.base_offset = base_offset
        self.end_offset = end_offset
        self._batch_bases: list[int] = []
        self._positions: list[int] = []

    def _index(self) -> tuple[list[int], list[int]]:
        """Return base offset and byte position of every batch, with the group's ends last."""
        if not self._positions:
            position, end = 0, len(self.data)
            while position < end:
                if end - position < _HEADER_BYTES:
                    raise violation(
                        "appended bytes are whole batches",
                        base=self.base_offset,
                        position=position,
                        size=end,
                    )
                base, length = _BASE_AND_LENGTH.unpack_from(self.data, position)
                self._batch_bases.append(base)
                self._positions.append(position)
                position += _LENGTH_OVERHEAD + length
            invariant(
                position == end and self._batch_bases[0] == self.base_offset,
                "appended batches are those of the offsets given",
                base=self.base_offset,
                first=self._batch_bases[0],
                position=position,
                size=end,
            )
            self._batch_bases.append(self.end_offset)
            self._positions.append(end)
        return self._batch_bases, self._positions

    def cut(
        self, offset: int, end_offset: int, max_bytes: int, *, at_least_one: bool
    ) -> tuple[bytes, bool]:
        """Return batches from the one containing ``offset`` (or the first) up to ``end_offset``.

        Returns:
            The batches, and whether they reach the group's end.
        """
        bases, positions = self._index()
        first = max(bisect_right(bases, offset) - 1, 0)
        # Batch i ends where batch i + 1 begins.
        last = bisect_right(bases, end_offset) - 1
        fitting = bisect_right(positions, positions[first] + max_bytes) - 1
        if fitting == first and at_least_one:
            fitting = first + 1
        stop = max(first, min(last, fitting))
        return self.data[positions[first] : positions[stop]], stop == len(positions) - 1

    def cut_to(self, end_offset: int) -> None:
        """Keep the batches below ``end_offset``, a boundary inside or at the end."""
        if end_offset == self.end_offset:
            return
        bases, positions = self._index()
        kept = bisect_left(bases, end_offset)
        invariant(
            0 < kept < len(bases) and bases[kept] == end_offset,
            "a truncation ends between two batches",
            end=end_offset,
            group_base=self.base_offset,
            group_end=self.end_offset,
        )
        self.end_offset = end_offset
        self.data = self.data[: positions[kept]]
        del bases[kept + 1 :], positions[kept + 1 :]


class TailCache:
    """Contiguous batches of [``start_offset``, ``end_offset``), newest last.

    Invariants:
        1. Batches that are not durable are dropped only by ``truncate_to`` and ``reset``.
        2. Groups are contiguous and in order.

    Appending is O(1), finding a group O(log groups), a batch inside it O(log batches) after one
    scan of its headers.
    """

    def __init__(self, bytes_max: int = TAIL_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        # Parallel lists with a moving head: a deque does not support bisection.
        self._bases: list[int] = []
        self._groups: list[_Group] = []
        self._head = 0
        self.start_offset = 0
        """First offset held, inclusive."""
        self.end_offset = 0
        """Next offset to be appended."""
        self.size_bytes = 0
        self.verified = VerifiedTail()
        """Batches of the tail that were verified when they arrived and are not delivered yet."""

    def reset(self, offset: int) -> None:
        """Drop everything; the next append begins at ``offset``."""
        self.verified.clear()
        self._bases.clear()
        self._groups.clear()
        self._head = 0
        self.start_offset = self.end_offset = offset
        self.size_bytes = 0

    def append(
        self,
        data: bytes,
        base_offset: int,
        end_offset: int,
        headers: Sequence[BatchHeader] = (),
    ) -> None:
        """Add whole batches covering [``base_offset``, ``end_offset``).

        ``headers`` are those of ``data`` if they were verified; else there are none.

        Raises:
            InvariantViolation: They do not continue the tail.
        """
        if not data or not base_offset == self.end_offset < end_offset:
            raise violation(
                "an append continues the tail",
                base=base_offset,
                end=end_offset,
                tail_end=self.end_offset,
                size=len(data),
            )
        self._bases.append(base_offset)
        self._groups.append(_Group(data, base_offset, end_offset))
        self.end_offset = end_offset
        self.size_bytes += len(data)
        self.verified.append(data, headers)

    def read(self, offset: int, max_bytes: int, end_offset: int) -> bytes | None:
        """Return whole batches from the one containing ``offset`` on, up to ``end_offset``.

        Returns:
            At least one batch if there is one, otherwise no more than ``max_bytes``; empty if
            there is none. None below ``start_offset``: read the log's files.
        """
        if offset < self.start_offset:
            return None
        if offset >= self.end_offset:
            return b""
        index = bisect_right(self._bases, offset, self._head) - 1
        chunks: list[bytes] = []
        room = max_bytes
        while index < len(self._groups):
            group = self._groups[index]
            if group.base_offset >= end_offset and chunks:
                break
            size = len(group.data)
            if offset <= group.base_offset and group.end_offset <= end_offset and size <= room:
                chunks.append(group.data)
                room -= size
                index += 1
                continue
            chunk, is_whole = group.cut(offset, end_offset, room, at_least_one=not chunks)
            chunks.append(chunk)
            if not is_whole:
                break
            room -= len(chunk)
            index += 1
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def truncate_to(self, end_offset: int) -> None:
        """Drop everything at and above ``end_offset``.

        Raises:
            InvariantViolation: Not a batch boundary.
        """
        if end_offset >= self.end_offset:
            return
        if end_offset <= self.start_offset:
            self.reset(end_offset)
            return
        self.verified.truncate_to(end_offset)
        while self._bases[-1] >= end_offset:
            self._bases.pop()
            self.size_bytes -= len(self._groups.pop().data)
        last = self._groups[-1]
        self.size_bytes -= len(last.data)
        last.cut_to(end_offset)
        self.size_bytes += len(last.data)
        self.end_offset = end_offset

    def evict_below(self, durable_offset: int) -> None:
        """Drop whole groups below ``durable_offset`` while the tail exceeds its budget."""
        head = self._head
        while (
            self.size_bytes > self._bytes_max
            and head < len(self._groups)
            and self._groups[head].end_offset <= durable_offset
        ):
            self.size_bytes -= len(self._groups[head].data)
            self.start_offset = self._groups[head].end_offset
            # Free the bytes now; compact the lists only when it is worth the copy.
            self._groups[head] = _EVICTED
            head += 1
        self._head = head
        if head > _COMPACT_AT and head * 2 > len(self._groups):
            del self._bases[:head], self._groups[:head]
            self._head = 0


_EVICTED = _Group(b"", 0, 0)

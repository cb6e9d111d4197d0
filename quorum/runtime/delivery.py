"""Hands committed ranges to the listener: once, contiguous, in order, in bounded pieces."""

from __future__ import annotations

import struct
from collections.abc import Callable

from quorum.errors import invariant
from quorum.runtime.ports import Listener

DELIVERY_BYTES_MAX = 1 << 20
"""Committed records handed to the listener in one call."""

_BASE_AND_LENGTH = struct.Struct(">qi")
_LAST_DELTA = struct.Struct(">i")
_LENGTH_OVERHEAD = 12
_LAST_DELTA_AT = 23


def end_offset_of(data: bytes) -> int:
    """The exclusive end offset of contiguous whole batches, by a walk over their headers.

    The batches are our own (verified when they were received or written); no checks here.
    """
    position = 0
    end = len(data)
    base = delta_at = 0
    while position < end:
        base, length = _BASE_AND_LENGTH.unpack_from(data, position)
        delta_at = position + _LAST_DELTA_AT
        position += _LENGTH_OVERHEAD + length
    return int(base) + int(_LAST_DELTA.unpack_from(data, delta_at)[0]) + 1


class Delivery:
    """Remembers how far the listener is and reads on from there.

    Args:
        read: ``(offset, max_bytes, end_offset)`` to whole batches, at least one.
    """

    def __init__(self, read: Callable[[int, int, int], bytes], listener: Listener) -> None:
        self._read = read
        self._listener = listener
        self.end_offset = 0
        """Everything below has been handed over (exclusive)."""

    def restart_at(self, end_offset: int) -> None:
        """The listener's state is now that of a checkpoint ending here."""
        self.end_offset = end_offset

    def deliver_to(self, high_watermark: int) -> None:
        """Hand over everything below ``high_watermark`` that has not been yet."""
        while self.end_offset < high_watermark:
            data = self._read(self.end_offset, DELIVERY_BYTES_MAX, high_watermark)
            invariant(data, "committed records can be read", offset=self.end_offset)
            end_offset = end_offset_of(data)
            invariant(
                self.end_offset < end_offset <= high_watermark,
                "committed records are delivered contiguously",
                delivered=self.end_offset,
                end=end_offset,
                high_watermark=high_watermark,
            )
            self.end_offset = end_offset
            self._listener.on_committed(data, end_offset)

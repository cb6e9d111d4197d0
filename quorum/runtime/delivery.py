"""Committed ranges for the listener: once, contiguous, in order, in bounded pieces; and when."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Final

from quorum.core.contract.local_events import LocalEvent
from quorum.core.contract.output import HighWatermarkAdvanced, Progress
from quorum.errors import invariant
from quorum.runtime.ports import Listener

DELIVERY_BYTES_MAX = 1 << 20
"""Committed records handed to the listener in one call."""
GATHERED_RECORDS_MAX: Final = 32
"""So many committed records are applied at once: more would not cost less each."""

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


class DeferredDelivery:
    """When a replica that does not lead delivers: not at once, and several commits together.

    Nobody but a reader of this replica waits for its image, while the leader waits for its
    acknowledgement. Applying every write by itself costs a follower more than receiving it does, at
    the very moment when the leader answers; a few together cost little more than one.

    ``on_due`` says whether what was deferred is urgent. It is called once for commits that may
    gather, and once more when something urgent follows.
    """

    def __init__(self, on_due: Callable[[bool], None]) -> None:
        self._on_due = on_due
        self._is_urgent = False
        self.is_due = False
        """Whether ``on_due`` was called and nothing was delivered since."""

    def note(self, progress: Iterable[Progress | LocalEvent], delivered_end: int) -> None:
        """Defer this; the listener has the records below ``delivered_end``."""
        if self._is_urgent:
            return
        is_urgent = any(
            type(each) is not HighWatermarkAdvanced
            or each.high_watermark - delivered_end >= GATHERED_RECORDS_MAX
            for each in progress
        )
        if is_urgent or not self.is_due:
            self.is_due = True
            self._is_urgent = is_urgent
            self._on_due(is_urgent)

    def delivered(self) -> None:
        """The listener is given everything now."""
        self.is_due = self._is_urgent = False

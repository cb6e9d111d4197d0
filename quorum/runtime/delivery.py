"""Delivery of committed ranges to the listener: once, contiguous, in order, bounded, deferred."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Final

from quorum.core.contract.local_events import LocalEvent
from quorum.core.contract.output import HighWatermarkAdvanced, Progress
from quorum.errors import violation
from quorum.runtime.ports import Listener
from quorum.runtime.verified_batches import VerifiedTail, bytes_of

DELIVERY_BYTES_MAX = 1 << 20
"""Bound of committed record bytes in one call of the listener."""
GATHERED_RECORDS_MAX: Final = 32
"""Committed records that are applied together; larger groups would not cost less per record."""

_BASE_AND_LENGTH = struct.Struct(">qi")
_LAST_DELTA = struct.Struct(">i")
_LENGTH_OVERHEAD = 12
_LAST_DELTA_AT = 23


def end_offset_of(data: bytes) -> int:
    """Return the exclusive end offset of contiguous whole batches, by a scan of their headers.

    The batches are our own (verified when received or written), so nothing is checked here.
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
    """Delivers committed records from the listener's position on.

    Args:
        read: Returns whole batches, at least one, for ``(offset, max_bytes, end_offset)``.
        verified: Batches that the listener need not verify again; the rest is read.
    """

    def __init__(
        self,
        read: Callable[[int, int, int], bytes],
        verified: VerifiedTail,
        listener: Listener,
    ) -> None:
        self._read = read
        self._verified = verified
        self._listener = listener
        self.end_offset = 0
        """End (exclusive) of the delivered records."""

    def restart_at(self, end_offset: int) -> None:
        """Continue after the listener loaded a checkpoint that ends here."""
        self.end_offset = end_offset

    def deliver_to(self, high_watermark: int) -> None:
        """Deliver the records below ``high_watermark`` that were not delivered yet."""
        while self.end_offset < high_watermark:
            self.deliver_some(high_watermark, DELIVERY_BYTES_MAX)

    def deliver_some(self, high_watermark: int, bytes_max: int) -> int:
        """Deliver once, at most ``bytes_max`` or one batch; return the bytes delivered."""
        delivered = 0
        if self.end_offset < high_watermark:
            verified = self._verified.take(self.end_offset, bytes_max, high_watermark)
            if verified:
                data = bytes_of(verified)
                end_offset = verified[-1].headers[-1].end_offset
            else:
                data = self._read(self.end_offset, bytes_max, high_watermark)
                if not data:
                    raise violation("committed records can be read", offset=self.end_offset)
                end_offset = end_offset_of(data)
            if not self.end_offset < end_offset <= high_watermark:
                raise violation(
                    "committed records are delivered contiguously",
                    delivered=self.end_offset,
                    end=end_offset,
                    high_watermark=high_watermark,
                )
            self.end_offset = end_offset
            self._listener.on_committed(data, end_offset, verified)
            delivered = len(data)
        return delivered


class DeferredDelivery:
    """Decides when a replica that does not lead delivers: deferred, several commits together.

    Only a reader of this replica waits for its image, but the leader waits for its acknowledgement.
    Applying each write alone costs a follower more than receiving it, just when the leader
    answers; applying several together costs little more than one.

    ``on_due`` is called with whether the deferred work is urgent: once for commits that may gather,
    and once more when urgent work follows. It is also called, as urgent, for what is left when a
    turn has delivered enough (``Host.delivery_turn_bytes``).
    """

    def __init__(self, on_due: Callable[[bool], None]) -> None:
        self._on_due = on_due
        self._is_urgent = False
        self.is_due = False
        """Whether ``on_due`` was called for new commits and nothing was delivered since."""
        self.has_rest = False
        """Whether the last turn delivered enough, and more is left."""

    def note(self, progress: Iterable[Progress | LocalEvent], delivered_end: int) -> None:
        """Defer progress; the listener has the records below ``delivered_end``."""
        if self._is_urgent or self.has_rest:
            return
        is_urgent = False
        for each in progress:
            if (
                type(each) is not HighWatermarkAdvanced
                or each.high_watermark - delivered_end >= GATHERED_RECORDS_MAX
            ):
                is_urgent = True
                break
        if is_urgent or not self.is_due:
            self.is_due = True
            self._is_urgent = is_urgent
            self._on_due(is_urgent)

    def delivered(self) -> None:
        """Reset: the listener gets all deferred progress now."""
        self.is_due = self._is_urgent = self.has_rest = False

    def leave_rest(self) -> None:
        """Ask for another turn: the last one delivered enough, and more is left."""
        self.has_rest = True
        self._on_due(True)  # noqa: FBT003 - the host's callback

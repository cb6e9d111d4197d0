"""The batches that the core writes itself: control records as bytes, stamped like all others."""

from __future__ import annotations

from collections.abc import Callable

from quorum.batch import scan_batches
from quorum.control import encode_control_batch
from quorum.core.output import Append
from quorum.ports import Clock


class ControlBatches:
    """One driver's encoder of control batches.

    Args:
        read: ``(offset, max_bytes, end_offset)`` to whole batches, at least one.
    """

    def __init__(self, clock: Clock, read: Callable[[int, int, int], bytes]) -> None:
        self._clock = clock
        self._read = read
        self.oldest_stamp = 0
        """Newest stamp of what a checkpoint or the log held, for a log that is empty now."""

    def applied(self, stamp_ms: int) -> None:
        """Note the newest stamp of what the listener has applied, checkpoints included."""
        self.oldest_stamp = max(self.oldest_stamp, stamp_ms)

    def encode(self, append: Append, log_start: int) -> bytes:
        """The batch of ``append``, stamped with the wall clock, and never below the one before."""
        before = self._timestamp_before(append.base_offset, log_start)
        return encode_control_batch(
            append.controls,
            base_offset=append.base_offset,
            epoch=append.epoch,
            timestamp=max(self._clock.wall_ms(), before),
        )

    def _timestamp_before(self, offset: int, log_start: int) -> int:
        if offset <= log_start:
            return self.oldest_stamp
        data = self._read(offset - 1, 1, offset)
        return scan_batches(data, verify_crc=False)[-1].max_timestamp

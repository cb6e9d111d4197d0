"""The batches that the core writes itself: control records as bytes, stamped like all others."""

from __future__ import annotations

from collections.abc import Callable

from quorum.batch import scan_batches
from quorum.control import encode_control_batch
from quorum.core.contract.output import Append
from quorum.ports import Clock


class ControlBatches:
    """One driver's encoder of control batches.

    Args:
        read: ``(offset, max_bytes, end_offset)`` to whole batches, at least one.
    """

    def __init__(self, clock: Clock, read: Callable[[int, int, int], bytes]) -> None:
        self._clock = clock
        self._read = read
        self.newest_stamp_ms = 0
        """Newest stamp of what a checkpoint held, was applied, or was encoded here.

        What comes after it is stamped no earlier, by whoever stamps it.
        """

    def applied(self, stamp_ms: int) -> None:
        """Note the newest stamp of what the listener has applied, checkpoints included."""
        self.newest_stamp_ms = max(self.newest_stamp_ms, stamp_ms)

    def encode(self, append: Append, log_start: int) -> bytes:
        """The batch of ``append``, stamped with the wall clock, and never below the one before.

        Raises:
            StorageError: The batch before it cannot be read, or is not what was written.
        """
        stamp_ms = max(self._clock.wall_ms(), self._timestamp_before(append.base_offset, log_start))
        self.newest_stamp_ms = max(self.newest_stamp_ms, stamp_ms)
        return encode_control_batch(
            append.controls,
            base_offset=append.base_offset,
            epoch=append.epoch,
            timestamp=stamp_ms,
        )

    def _timestamp_before(self, offset: int, log_start: int) -> int:
        if offset <= log_start:
            return self.newest_stamp_ms
        data = self._read(offset - 1, 1, offset)
        return scan_batches(data)[-1].max_timestamp

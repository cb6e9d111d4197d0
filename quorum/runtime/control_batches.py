"""Encode the core's control records as stamped batches."""

from __future__ import annotations

from collections.abc import Callable

from quorum.batch import scan_batches
from quorum.control import encode_control_batch
from quorum.core.contract.output import Append
from quorum.ports import Clock


class ControlBatches:
    """Encoder of control batches. Owned by one driver.

    Args:
        read: Returns whole batches, at least one, for ``(offset, max_bytes, end_offset)``.
    """

    def __init__(self, clock: Clock, read: Callable[[int, int, int], bytes]) -> None:
        self._clock = clock
        self._read = read
        self.newest_stamp_ms = 0
        """Highest stamp of all batches in a checkpoint, applied, or encoded here.

        Later batches get no lower stamp, whether the controller or the driver stamps them.
        """

    def applied(self, stamp_ms: int) -> None:
        """Record the newest stamp that the listener has applied, checkpoints included."""
        self.newest_stamp_ms = max(self.newest_stamp_ms, stamp_ms)

    def encode(self, append: Append, log_start: int) -> bytes:
        """Return the batch of ``append``, stamped with the wall clock but not below the last stamp.

        Raises:
            StorageError: The previous batch is unreadable or corrupt.
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

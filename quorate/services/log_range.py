"""The readable range of this replica's log, and checks of consumers' positions.

Evaluates the current state only, without waiting, reading or storing, so the simulator runs the
same checks.

See: KIP-320, requirements 279.1, 320.1-320.5.
"""

from __future__ import annotations

from quorate.services.errors import RequestRefusedError
from quorate.services.leadership import check_epoch_read, leader_hint
from quorate.services.ports import KnownLog
from quorum.errors import ErrorCode
from quorum.types import Epoch, OffsetAndEpoch
from quorum.v1.errors_pb2 import DivergenceHint, OffsetBounds


class LogRange:
    """Checks positions against one replica's log."""

    def __init__(self, node: KnownLog) -> None:
        self._node = node

    def check_position(self, offset: int, last_epoch: int) -> DivergenceHint | None:
        """Check a consumer that has everything below ``offset``, the last record in ``last_epoch``.

        Returns:
            None if its history is a prefix of this log, or ``last_epoch`` is -1. Otherwise the
            largest epoch of this log at or below ``last_epoch`` with its end offset here; epoch -1
            and the log start if the histories diverge below the log start.

        Raises:
            RequestRefusedError: UNKNOWN_LEADER_EPOCH, OFFSET_NOT_AVAILABLE or OFFSET_OUT_OF_RANGE.
        """
        node = self._node
        high_watermark = node.high_watermark
        if high_watermark < 0:
            raise RequestRefusedError(
                ErrorCode.OFFSET_NOT_AVAILABLE, "the high watermark is not known yet"
            )
        if offset < node.log_start.offset:
            raise self.out_of_range(offset)
        check_epoch_read(node, last_epoch)
        if not node.is_leader and offset > high_watermark:
            raise RequestRefusedError(
                ErrorCode.OFFSET_NOT_AVAILABLE,
                f"offset {offset} is above this replica's high watermark {high_watermark}",
                (leader_hint(node),),
            )
        if last_epoch >= 0:
            found = self._history_end(last_epoch)
            if found is None:
                # The whole remaining log is newer: the histories diverge below its start.
                return DivergenceHint(epoch=-1, offset=node.log_start.offset)
            if found.epoch < last_epoch or found.offset < offset:
                return DivergenceHint(epoch=found.epoch, offset=min(found.offset, offset))
            before = self._history_end(last_epoch - 1)
            if before is not None and before.offset >= offset > 0:
                # Here the record before the offset is of an older epoch.
                return DivergenceHint(epoch=before.epoch, offset=offset)
        if offset > node.log_end.offset:
            raise self.out_of_range(offset)
        return None

    def epoch_end(self, last_epoch: Epoch) -> OffsetAndEpoch | None:
        """Return the largest epoch at or below ``last_epoch`` and its end offset (279.1).

        None if there is none. Only a leader's answer counts.

        Raises:
            RequestRefusedError: UNKNOWN_LEADER_EPOCH for an epoch that this node does not know.
        """
        check_epoch_read(self._node, last_epoch)
        if self._node.log_start.offset == 0:
            # No record is before it, so its epoch says nothing.
            return self._node.end_offset_for_epoch(last_epoch)
        return self._history_end(last_epoch)

    def _history_end(self, epoch: int) -> OffsetAndEpoch | None:
        start = self._node.log_start
        if epoch == start.epoch:
            # The record before the log start was trimmed, but its epoch is still known.
            return self._node.end_offset_for_epoch(epoch) or start
        return self._node.end_offset_for_epoch(epoch)

    def out_of_range(self, offset: int) -> RequestRefusedError:
        """Return the refusal of an offset outside the log, with the readable range (320.5)."""
        return RequestRefusedError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"offset {offset} is outside [{self._node.log_start.offset}, "
            f"{self._node.high_watermark}]",
            (self.bounds(),),
        )

    def bounds(self) -> OffsetBounds:
        """Return the readable range and the newest checkpoint."""
        snapshot = self._node.latest_snapshot()
        return OffsetBounds(
            earliest_offset=self._node.log_start.offset,
            high_watermark=self._node.high_watermark,
            snapshot_end_offset=-1 if snapshot is None else snapshot.offset,
            snapshot_epoch=-1 if snapshot is None else snapshot.epoch,
            resume_offset=-1,
            resume_epoch=-1,
        )

"""Divergence is found by epochs, and no record beyond it is kept (KIP-279)."""

from __future__ import annotations

from bisect import bisect_right

from quorum.core.messages.fetch_messages import FetchResponse
from quorum.core.messages.message_types import Message
from quorum.errors import ErrorCode
from quorum.types import NodeId, OffsetAndEpoch
from simulation.invariants.invariant import Invariant
from simulation.invariants.mirror import Truncation
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import Seen


class LineageCuts(Invariant):
    """A diverging response of a leader names the end of an epoch in the leader's log.

    The replica that receives it keeps no record of a later epoch, and no record of that epoch at or
    above that end. A replica without that epoch keeps its records of earlier epochs, and fetches
    again from their end (279.2). A relay may name any committed position.
    """

    name = "lineage-cuts"
    sent_kinds = (FetchResponse,)
    received_kinds = (FetchResponse,)

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.diverging: dict[NodeId, tuple[Seen, OffsetAndEpoch]] = {}
        """By node: its incarnation, and the point of the last diverging response to it."""

    def on_sent(self, seen: Seen, to: NodeId, message: Message) -> None:
        if type(message) is not FetchResponse or message.diverging is None:
            return
        point = message.diverging
        if message.error != ErrorCode.NONE or message.leader_id != seen.id:
            return
        if not self._is_end_of_epoch(seen, point):
            self.fail(
                "a diverging response names a position where no epoch ends",
                node=seen.id,
                replica=to,
                diverging=point,
            )

    @staticmethod
    def _is_end_of_epoch(seen: Seen, point: OffsetAndEpoch) -> bool:
        log = seen.written
        after = bisect_right(log.ends, point.offset)
        is_last = after == len(log.ends) or log.epochs[after] > point.epoch
        return is_last and log.has_boundary(point.offset, point.epoch)

    def on_received(self, seen: Seen, sender: NodeId, message: Message) -> None:
        if type(message) is FetchResponse and message.diverging is not None:
            self.diverging[seen.id] = (seen, message.diverging)

    def on_truncated(self, seen: Seen, cut: Truncation) -> None:
        incarnation, point = self.diverging.pop(seen.id, (None, None))
        if point is None or incarnation is not seen:
            return
        end_offset, end_epoch = cut.end_offset, seen.written.epochs[-1]
        keeps_more = end_epoch == point.epoch and end_offset > point.offset
        if end_epoch > point.epoch or keeps_more:
            self.fail(
                "a log was cut but keeps records that the leader's lineage excludes",
                node=seen.id,
                end_offset=end_offset,
                end_epoch=end_epoch,
                diverging=point,
            )

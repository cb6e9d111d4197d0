"""At most one leader per epoch (Raft, Election Safety)."""

from __future__ import annotations

from quorum.core.messages.epoch_messages import BeginQuorumEpochRequest
from quorum.core.messages.message_types import Message
from quorum.types import NodeId
from simulation.invariants.invariant import Invariant
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import Seen


class OneLeader(Invariant):
    """Only one node leads, or claims to lead, in an epoch, over all its incarnations."""

    name = "one-leader"
    sent_kinds = (BeginQuorumEpochRequest,)

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.leaders: dict[int, NodeId] = {}

    def on_stepped(self, seen: Seen) -> None:
        node = seen.replica.node
        if node.is_leader:
            self._claim(seen.id, node.epoch)

    def on_sent(self, seen: Seen, to: NodeId, message: Message) -> None:
        if type(message) is BeginQuorumEpochRequest:
            self._claim(message.leader.id, message.epoch)

    def _claim(self, node_id: NodeId, epoch: int) -> None:
        first = self.leaders.setdefault(epoch, node_id)
        self.require(
            first == node_id, "two leaders in one epoch", epoch=epoch, first=first, second=node_id
        )

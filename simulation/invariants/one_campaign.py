"""Only one incarnation of a node requests votes in an epoch (ADR 7).

A later incarnation may have lost records that its first request named, and voters grant a repeated
request without comparing logs again.
"""

from __future__ import annotations

from quorum.core.messages.message_types import Message
from quorum.core.messages.vote_messages import VoteRequest
from quorum.types import NodeId
from simulation.invariants.invariant import Invariant
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import Seen


class OneCampaign(Invariant):
    """A restarted node never requests votes in an epoch in which it did before the restart."""

    name = "one-campaign"
    sent_kinds = (VoteRequest,)

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.incarnations: dict[tuple[NodeId, int], int] = {}

    def on_sent(self, seen: Seen, to: NodeId, message: Message) -> None:
        if type(message) is VoteRequest and not message.pre_vote:
            first = self.incarnations.setdefault((seen.id, message.epoch), seen.incarnation)
            self.require(
                first == seen.incarnation,
                "two incarnations requested votes in one epoch",
                node=seen.id,
                epoch=message.epoch,
                first=first,
                now=seen.incarnation,
            )

"""Votes in an epoch are asked for in one life only (ADR 7).

A later life may have lost records that the voters were told of; they grant a repeated request
without looking at the log again.
"""

from __future__ import annotations

from quorum.core.messages.message_types import Message
from quorum.core.messages.vote_messages import VoteRequest
from quorum.types import NodeId
from simulation.invariants.invariant import Invariant
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import Seen


class OneCampaign(Invariant):
    """A restarted node never asks for votes in an epoch its former life asked in."""

    name = "one-campaign"
    sent_kinds = (VoteRequest,)

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.lives: dict[tuple[NodeId, int], int] = {}

    def on_sent(self, seen: Seen, to: NodeId, message: Message) -> None:
        if type(message) is VoteRequest and not message.pre_vote:
            first = self.lives.setdefault((seen.id, message.epoch), seen.incarnation)
            self.require(
                first == seen.incarnation,
                "votes asked for in two lives",
                node=seen.id,
                epoch=message.epoch,
                first=first,
                now=seen.incarnation,
            )

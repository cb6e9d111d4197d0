"""One vote per epoch, over all incarnations of a node (Raft section 5.2)."""

from __future__ import annotations

from quorum.core.messages.message_types import Message
from quorum.core.messages.vote_messages import VoteRequest, VoteResponse
from quorum.types import ElectionState, NodeId
from simulation.invariants.invariant import Invariant
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import Seen


class OneVote(Invariant):
    """The votes on a node's disk and in its responses name one candidate per epoch."""

    name = "one-vote"
    sent_kinds = (VoteRequest, VoteResponse)

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.votes: dict[tuple[NodeId, int], NodeId] = {}

    def on_voted(self, seen: Seen, state: ElectionState) -> None:
        if state.voted is not None:
            self._vote(seen.id, state.epoch, state.voted.id)

    def on_sent(self, seen: Seen, to: NodeId, message: Message) -> None:
        if type(message) is VoteRequest:
            if not message.pre_vote:
                self._vote(seen.id, message.epoch, message.candidate.id)
        elif (
            type(message) is VoteResponse
            and message.granted
            and not self.run_observer.is_pre_vote.get((to, message.request_id), True)
        ):
            self._vote(seen.id, message.epoch, to)

    def _vote(self, voter: NodeId, epoch: int, candidate: NodeId) -> None:
        first = self.votes.setdefault((voter, epoch), candidate)
        self.require(
            first == candidate,
            "a second vote in one epoch",
            voter=voter,
            epoch=epoch,
            first=first,
            second=candidate,
        )

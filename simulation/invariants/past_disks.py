"""A disk that has forgotten what it promised is found out (ADR 20; KIP-853)."""

from __future__ import annotations

from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.message_types import Message, ReceivedRequest
from quorum.core.messages.vote_messages import VoteRequest, VoteResponse
from quorum.errors import ErrorCode
from quorum.types import NodeId, ReplicaKey
from simulation.invariants.invariant import Invariant
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import Seen


class SecondIncarnation(Invariant):
    """Who was formatted again by the same command neither stands nor votes.

    It may have voted before, and cannot know.
    """

    name = "second-incarnation"
    sent_kinds = (VoteRequest, VoteResponse)

    def on_sent(self, seen: Seen, to: NodeId, message: Message) -> None:
        if seen.id not in self.run_observer.second_lives:
            return
        is_vote = type(message) is VoteRequest or (
            type(message) is VoteResponse and message.granted
        )
        self.require(
            not is_vote, "an empty disk votes in the name of another", node=seen.id, message=message
        )


class Regressions(Invariant):
    """No leader serves a voter that asks below what it acknowledged to it in the same leadership
    term.

    Unless the voter says that it has lost records, or that it does not vote. An acknowledgement
    is a Fetch whose position the leader's log has, answered by what follows there. A Fetch that
    was there before it may be answered behind it: a copy of an old one waits as any other. What
    only a request says to be a voter's acknowledgement is held against no voter (ADR 52).
    """

    name = "regressions"
    sent_kinds = (FetchResponse,)

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.asked: dict[tuple[NodeId, int, NodeId, int], tuple[FetchRequest, int]] = {}
        """Leader, its life, sender and number, to the request of the highest offset, and what its
        sender had acknowledged when it came."""
        self.acknowledged: dict[tuple[NodeId, int, int], dict[ReplicaKey, int]] = {}
        """Leader, its life and epoch, to what each replica acknowledged."""

    def on_request(self, seen: Seen, sender: NodeId, received: ReceivedRequest) -> None:
        request = received.request
        if type(request) is not FetchRequest or not received.is_proven:
            return
        key = (seen.id, seen.incarnation, sender, request.request_id)
        before = self.asked.get(key)
        if before is None or request.fetch_offset > before[0].fetch_offset:
            known = self.acknowledged.get((seen.id, seen.incarnation, request.epoch), {})
            self.asked[key] = request, known.get(request.replica, -1)

    def on_sent(self, seen: Seen, to: NodeId, message: Message) -> None:
        if type(message) is not FetchResponse:
            return
        # Also with a refusal, lest what was refused be taken for what a copy of it is served.
        asked = self.asked.pop((seen.id, seen.incarnation, to, message.request_id), None)
        if asked is None or message.error != ErrorCode.NONE:
            return
        request, before = asked
        if message.leader_id != seen.id or message.epoch != request.epoch:
            return
        acknowledged = self.acknowledged.setdefault((seen.id, seen.incarnation, message.epoch), {})
        if request.has_lost_records or request.is_disqualified:
            acknowledged.pop(request.replica, None)
            return
        if request.fetch_offset < before and any(
            voter.key == request.replica for voter in seen.replica.node.voters
        ):
            self.fail(
                "a voter was served below what it had acknowledged",
                node=seen.id,
                voter=request.replica.id,
                epoch=message.epoch,
                acknowledged=before,
                fetch_offset=request.fetch_offset,
            )
        if message.snapshot_id is not None or message.diverging is not None:
            return
        if seen.written.has_boundary(request.fetch_offset, request.last_fetched_epoch):
            held = acknowledged.get(request.replica, -1)
            if before >= held or request.fetch_offset > held:
                acknowledged[request.replica] = request.fetch_offset

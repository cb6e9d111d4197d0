"""A disk that has lost its promises is detected (ADR 20; KIP-853)."""

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
    """A node formatted again by the same command neither campaigns nor votes.

    It may have voted before, and cannot know it.
    """

    name = "second-incarnation"
    sent_kinds = (VoteRequest, VoteResponse)

    def on_sent(self, seen: Seen, to: NodeId, message: Message) -> None:
        if seen.id not in self.run_observer.reformatted_nodes:
            return
        is_vote = type(message) is VoteRequest or (
            type(message) is VoteResponse and message.granted
        )
        self.require(
            not is_vote,
            "an empty disk votes for the disk it replaced",
            node=seen.id,
            message=message,
        )


class Regressions(Invariant):
    """No leader serves a voter that fetches below the offset it acknowledged in the same term.

    Exempt is a voter that reports lost records, or that it does not vote, and a replica that was an
    observer when its Fetch arrived: nothing was committed by its acknowledgements. An
    acknowledgement is a Fetch at a position that the leader's log has, answered with the records
    behind it. A Fetch that arrived before the acknowledgement may be answered after it, because
    copies of old requests are held as well. A request of an unproven sender is not an
    acknowledgement (ADR 52).
    """

    name = "regressions"
    sent_kinds = (FetchResponse,)

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.asked: dict[tuple[NodeId, int, NodeId, int], tuple[FetchRequest, int, bool]] = {}
        """By leader, its incarnation, sender and request id: the request with the highest offset,
        what its sender had acknowledged when it arrived, and whether it was a voter then."""
        self.acknowledged: dict[tuple[NodeId, int, int], dict[ReplicaKey, int]] = {}
        """By leader, its incarnation and epoch: the offset that each replica acknowledged."""

    def on_request(self, seen: Seen, sender: NodeId, received: ReceivedRequest) -> None:
        request = received.request
        if type(request) is not FetchRequest or not received.is_proven:
            return
        key = (seen.id, seen.incarnation, sender, request.request_id)
        before = self.asked.get(key)
        if before is None or request.fetch_offset > before[0].fetch_offset:
            known = self.acknowledged.get((seen.id, seen.incarnation, request.epoch), {})
            is_voter = any(voter.key == request.replica for voter in seen.replica.node.voters)
            self.asked[key] = request, known.get(request.replica, -1), is_voter

    def on_sent(self, seen: Seen, to: NodeId, message: Message) -> None:
        if type(message) is not FetchResponse:
            return
        # Also for a refusal: a later response to a copy must not be matched with the refused one.
        asked = self.asked.pop((seen.id, seen.incarnation, to, message.request_id), None)
        if asked is None or message.error != ErrorCode.NONE:
            return
        request, before, was_voter = asked
        if message.leader_id != seen.id or message.epoch != request.epoch:
            return
        acknowledged = self.acknowledged.setdefault((seen.id, seen.incarnation, message.epoch), {})
        if request.has_lost_records or request.is_disqualified:
            acknowledged.pop(request.replica, None)
            return
        if request.fetch_offset < before and was_voter:
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

"""A disk that has forgotten what it promised is found out (decision 9; KIP-853)."""

from __future__ import annotations

from quorate.sim.invariants.violation import Invariant
from quorate.sim.invariants.witness import Seen, Witness
from quorum.core.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages import Message
from quorum.core.vote_messages import VoteRequest, VoteResponse
from quorum.errors import ErrorCode
from quorum.types import NodeId, ReplicaKey


class SecondLife(Invariant):
    """Who was formatted again by the same command neither stands nor votes.

    It may have voted before, and cannot know.
    """

    name = "second-life"
    sent_kinds = (VoteRequest, VoteResponse)

    def on_sent(self, seen: Seen, to: NodeId, message: Message) -> None:
        if seen.id not in self.witness.second_lives:
            return
        is_vote = type(message) is VoteRequest or (
            type(message) is VoteResponse and message.granted
        )
        self.require(
            not is_vote, "an empty disk votes in the name of another", node=seen.id, message=message
        )


class Regressions(Invariant):
    """No leader serves a voter below what that voter acknowledged to it in the same reign.

    Unless the voter says that it has lost records, or that it does not vote. An acknowledgement
    is a Fetch whose position the leader's log has, answered by what follows there.
    """

    name = "regressions"
    sent_kinds = (FetchResponse,)
    received_kinds = (FetchRequest,)

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        self.asked: dict[tuple[NodeId, int, NodeId, int], FetchRequest] = {}
        """Leader, its life, sender and number, to the request of the highest offset."""
        self.acknowledged: dict[tuple[NodeId, int, int], dict[ReplicaKey, int]] = {}
        """Leader, its life and epoch, to what each replica acknowledged."""

    def on_received(self, seen: Seen, sender: NodeId, message: Message) -> None:
        if type(message) is not FetchRequest:
            return
        key = (seen.id, seen.life, sender, message.request_id)
        before = self.asked.get(key)
        if before is None or message.fetch_offset > before.fetch_offset:
            self.asked[key] = message

    def on_sent(self, seen: Seen, to: NodeId, message: Message) -> None:
        if type(message) is not FetchResponse or message.error != ErrorCode.NONE:
            return
        request = self.asked.pop((seen.id, seen.life, to, message.request_id), None)
        if request is None or message.leader_id != seen.id or message.epoch != request.epoch:
            return
        acknowledged = self.acknowledged.setdefault((seen.id, seen.life, message.epoch), {})
        if request.has_lost_records or request.is_barred:
            acknowledged.pop(request.replica, None)
            return
        before = acknowledged.get(request.replica, -1)
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
            acknowledged[request.replica] = request.fetch_offset

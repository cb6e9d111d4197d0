"""A follower in contact with its leader grants no pre-vote (Raft dissertation 4.2.3 and 9.6)."""

from __future__ import annotations

from typing import NamedTuple

from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.message_types import Message
from quorum.core.messages.vote_messages import VoteResponse
from quorum.errors import ErrorCode
from quorum.types import NodeId
from simulation.invariants.invariant import Invariant
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import Seen


class _Contact(NamedTuple):
    incarnation: int
    epoch: int
    leader_id: NodeId
    at_ms: int


class LeaderStickiness(Invariant):
    """A follower grants no pre-vote if its leader has just answered its Fetch and still leads.

    *Just* is half a fetch timeout by the voter's own clock. A node whose fetch timeout expired
    before the response came is not a follower. A leader with a corrupt log need not be protected,
    so nothing is checked once disks are corrupt.
    """

    name = "leader-stickiness"
    sent_kinds = (FetchRequest, VoteResponse)
    received_kinds = (FetchResponse,)

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.asked: dict[NodeId, tuple[int, int]] = {}
        """The last Fetch of each node, and when it was sent."""
        self.contacts: dict[NodeId, _Contact] = {}

    def on_sent(self, seen: Seen, to: NodeId, message: Message) -> None:
        if type(message) is FetchRequest:
            self.asked[seen.id] = (message.request_id, seen.now_ms())
        elif (
            type(message) is VoteResponse
            and message.granted
            and self.run_observer.is_pre_vote.get((to, message.request_id), False)
        ):
            self._check(seen, to, message)

    def on_received(self, seen: Seen, sender: NodeId, message: Message) -> None:
        if type(message) is not FetchResponse or message.error != ErrorCode.NONE:
            return
        request_id, asked_ms = self.asked.get(seen.id, (-1, 0))
        now_ms = seen.now_ms()
        is_awaited = (
            message.request_id == request_id
            and (message.leader_id == sender or sender < 0)
            and message.epoch == seen.replica.node.epoch
            and seen.replica.node.role_name == "Follower"
            and now_ms - asked_ms < self.run_observer.config.request_timeout_ms
        )
        if is_awaited:
            self.contacts[seen.id] = _Contact(
                seen.incarnation, message.epoch, message.leader_id, now_ms
            )

    def _check(self, seen: Seen, to: NodeId, message: VoteResponse) -> None:
        contact = self.contacts.get(seen.id)
        if contact is None or (contact.incarnation, contact.epoch) != (
            seen.incarnation,
            message.epoch,
        ):
            return
        leader = self.run_observer.nodes.get(contact.leader_id)
        leads = (
            leader is not None
            and leader.is_up
            and leader.replica.node.is_leader
            and leader.replica.node.epoch == contact.epoch
        )
        silent_ms = seen.now_ms() - contact.at_ms
        is_doubtful = self.run_observer.is_chain_damaged or self.run_observer.forged
        self.require(
            is_doubtful or not leads or silent_ms > self.run_observer.config.fetch_timeout_ms // 2,
            "a follower grants a pre-vote although its leader has just answered it",
            node=seen.id,
            candidate=to,
            leader=contact.leader_id,
            epoch=contact.epoch,
            since_contact_ms=silent_ms,
        )

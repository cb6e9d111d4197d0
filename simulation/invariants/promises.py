"""No promise is sent before the state behind it is durable (Raft section 5; ADR 7)."""

from __future__ import annotations

from quorum.core.messages.epoch_messages import BeginQuorumEpochRequest
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.message_types import Message
from quorum.core.messages.vote_messages import VoteRequest, VoteResponse
from quorum.errors import ErrorCode
from quorum.types import NodeId
from simulation.invariants.invariant import Invariant
from simulation.invariants.seen import Seen


class Promises(Invariant):
    """The sender's disk has epochs, votes, leadership and acknowledged records first."""

    name = "promises"

    def on_sent(self, seen: Seen, to: NodeId, message: Message) -> None:
        election = seen.election
        if message.epoch > election.epoch:
            self.fail(
                "an epoch was sent before it was durable",
                node=seen.id,
                message=type(message).__name__,
                epoch=message.epoch,
                durable=election.epoch,
            )
        if type(message) is FetchRequest:
            self._acknowledged(seen, message)
        elif type(message) is VoteRequest:
            if not message.pre_vote:
                self._voted(seen, message.epoch, message.candidate.id)
        elif type(message) is VoteResponse:
            if message.granted and not self.run_observer.is_pre_vote.get(
                (to, message.request_id), True
            ):
                self._voted(seen, message.epoch, to)
        elif (
            type(message) is BeginQuorumEpochRequest
            or (
                type(message) is FetchResponse
                and message.error == ErrorCode.NONE
                and message.leader_id == seen.id
            )
        ) and not (
            election.epoch > message.epoch
            or (election.epoch == message.epoch and election.leader_id == seen.id)
        ):
            self.fail(
                "leadership was used before it was durable",
                node=seen.id,
                message=type(message).__name__,
                epoch=message.epoch,
                durable=election,
            )

    def on_stepped(self, seen: Seen) -> None:
        node = seen.replica.node
        if node.is_leader and seen.election != seen.leading:
            election = seen.election
            self.require(
                election.epoch == node.epoch and election.leader_id == seen.id,
                "a node leads before its leadership is durable",
                node=seen.id,
                epoch=node.epoch,
                durable=election,
            )
            seen.leading = election

    def _acknowledged(self, seen: Seen, message: FetchRequest) -> None:
        offset = message.fetch_offset
        durable = seen.durable
        # Below the log start a checkpoint covers the records.
        is_held = offset < durable.ends[0] or durable.chain_at(offset) is not None
        if not is_held:
            self.fail(
                "records were acknowledged before they were durable",
                node=seen.id,
                fetch_offset=offset,
                durable_end=durable.end_offset,
            )

    def _voted(self, seen: Seen, epoch: int, candidate: NodeId) -> None:
        election = seen.election
        self.require(
            election.epoch > epoch
            or (
                election.epoch == epoch
                and election.voted is not None
                and election.voted.id == candidate
            ),
            "a vote was sent before it was durable",
            node=seen.id,
            epoch=epoch,
            candidate=candidate,
            durable=election,
        )

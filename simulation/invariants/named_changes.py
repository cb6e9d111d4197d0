"""The log says who changed the voters or had leadership transferred, and why (ADR 76)."""

from __future__ import annotations

from quorum.control_records import LeaderChange, Origin, Voters
from quorum.core.messages.epoch_messages import EndQuorumEpochRequest, EndQuorumEpochResponse
from quorum.core.messages.message_types import Message, ReceivedRequest
from quorum.errors import ErrorCode
from quorum.incarnation import LogIncarnation
from quorum.types import NodeId, ReplicaKey, Voter
from simulation.invariants.contents import controls_of
from simulation.invariants.invariant import Invariant
from simulation.invariants.mirror import Batch
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import Seen
from simulation.operator import OPERATOR, asked


class NamedChanges(Invariant):
    """A voters record names the request that it carries out, a leader change record its transfer.

    Simulated operators state in the reason what they ask for, so a reason that belongs to another
    change is found too. A leader that nobody's transfer made has no origin.
    """

    name = "named-changes"
    sent_kinds = (EndQuorumEpochRequest, EndQuorumEpochResponse)

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.before: dict[ReplicaKey, Voter] | None = None
        self.incarnation: LogIncarnation | None = None
        self.requests: dict[tuple[NodeId, NodeId, int], EndQuorumEpochRequest] = {}
        """By receiver, sender and request id."""
        self.transfers: dict[tuple[NodeId, int, int], Origin | None] = {}
        """By node, its incarnation and the epoch in which it campaigns because of a transfer."""

    def on_committed(self, seen: Seen, batches: list[Batch], end_offset: int) -> None:
        for batch in batches:
            for control in controls_of(batch):
                if isinstance(control, Voters):
                    self._check(control, batch.end_offset)

    def _check(self, record: Voters, end_offset: int) -> None:
        before, self.before = self.before, {voter.key: voter for voter in record.voters}
        same_log, self.incarnation = self.incarnation == record.incarnation, record.incarnation
        if before is None or not same_log:
            return
        for verb, node_id in _changes(before, self.before):
            own = f"self registration of node {node_id}"
            self.require(
                record.origin in (asked(verb, node_id), Origin(reason=own)),
                "a voters record does not say who asked for it",
                end_offset=end_offset,
                change=f"{verb} {node_id}",
                origin=record.origin,
            )

    def on_request(self, seen: Seen, sender: NodeId, received: ReceivedRequest) -> None:
        request = received.request
        if isinstance(request, EndQuorumEpochRequest) and request.campaign_now:
            self.requests[seen.id, sender, request.request_id] = request

    def on_sent(self, seen: Seen, to: NodeId, message: Message) -> None:
        if isinstance(message, EndQuorumEpochRequest) and message.campaign_now:
            origin = message.origin
            self.require(
                origin is not None
                and (origin.principal != OPERATOR or origin == asked("transfer from", seen.id)),
                "a transfer does not say who asked for it",
                node=seen.id,
                origin=origin,
            )
        elif isinstance(message, EndQuorumEpochResponse):
            request = self.requests.pop((seen.id, to, message.request_id), None)
            if request is not None and message.error == ErrorCode.NONE:
                epoch = request.epoch + 1
                self.transfers[seen.id, seen.incarnation, epoch] = request.origin

    def on_appended(self, seen: Seen, batches: list[Batch]) -> None:
        if not seen.replica.node.is_leader:
            return
        for batch in batches:
            for control in controls_of(batch):
                if isinstance(control, LeaderChange) and control.leader_id == seen.id:
                    expected = self.transfers.get((seen.id, seen.incarnation, batch.epoch))
                    self.require(
                        control.origin == expected,
                        "a leader change record does not name the transfer behind it",
                        node=seen.id,
                        epoch=batch.epoch,
                        origin=control.origin,
                        expected=expected,
                    )


def _changes(
    before: dict[ReplicaKey, Voter], after: dict[ReplicaKey, Voter]
) -> list[tuple[str, NodeId]]:
    """Return what differs between two voter sets."""
    removed = [("remove", key.id) for key in before if key not in after]
    added = [("add", key.id) for key in after if key not in before]
    moved = [("update", key.id) for key in after if key in before and after[key] != before[key]]
    return [*removed, *added, *moved]

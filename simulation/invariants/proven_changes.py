"""No request of an unproven sender changes the voter set (ADR 52)."""

from __future__ import annotations

from quorum.control_records import Voters
from quorum.core.messages.message_types import Message, ReceivedRequest
from quorum.core.messages.voter_messages import (
    AddVoterRequest,
    RemoveVoterRequest,
    UpdateVoterRequest,
    VoterChangeResponse,
)
from quorum.errors import ErrorCode
from quorum.types import NodeId, Voter
from simulation.invariants.contents import controls_of
from simulation.invariants.invariant import Invariant
from simulation.invariants.mirror import Batch
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import Seen

_Asked = UpdateVoterRequest | AddVoterRequest | RemoveVoterRequest


class ProvenChanges(Invariant):
    """No leader writes a voters record that only an unproven request asked for.

    Otherwise a stranger's address could replace a voter's, and the stranger could vote in its name.
    A refused request does not count any more, because an operator may request the same later.
    """

    name = "proven-changes"
    sent_kinds = (VoterChangeResponse,)

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.asked: dict[tuple[NodeId, int, int], dict[tuple[NodeId, int], _Asked]] = {}
        """By leader, its incarnation and epoch: the requests, by sender and request id."""

    def on_request(self, seen: Seen, sender: NodeId, received: ReceivedRequest) -> None:
        request = received.request
        if received.is_proven or not isinstance(request, _Asked):
            return
        node = seen.replica.node
        if node.is_leader and not _is_done(request, node.voters):
            asked = self.asked.setdefault((seen.id, seen.incarnation, node.epoch), {})
            asked[sender, request.request_id] = request

    def on_sent(self, seen: Seen, to: NodeId, message: Message) -> None:
        if type(message) is not VoterChangeResponse or message.error != ErrorCode.INVALID_REQUEST:
            return
        key = (seen.id, seen.incarnation, message.epoch)
        self.asked.get(key, {}).pop((to, message.request_id), None)

    def on_appended(self, seen: Seen, batches: list[Batch]) -> None:
        if not self.asked or not seen.replica.node.is_leader:
            return
        for batch in batches:
            asked = self.asked.get((seen.id, seen.incarnation, batch.epoch))
            if not asked:
                continue
            for control in controls_of(batch):
                if isinstance(control, Voters):
                    self._check(seen, control, asked)

    def _check(self, seen: Seen, record: Voters, asked: dict[tuple[NodeId, int], _Asked]) -> None:
        for (sender, _), request in asked.items():
            if _is_done(request, record.voters):
                self.fail(
                    "a request of an unproven sender changed the voter set",
                    node=seen.id,
                    sender=sender,
                    request=request,
                )


def _is_done(request: _Asked, voters: tuple[Voter, ...]) -> bool:
    """Return whether a voter set is as requested."""
    if isinstance(request, RemoveVoterRequest):
        return all(each.key != request.voter for each in voters)
    wanted = request.voter
    return any(each.key == wanted.key and each.endpoints == wanted.endpoints for each in voters)

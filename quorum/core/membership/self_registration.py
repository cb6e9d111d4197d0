"""This node's entry in the voter set: keep it up to date, and request one (auto join).

A voter whose entry differs from its configuration requests an update from the leader; a leader
updates its own. An observer requests an entry only with ``auto_join``, and never as a removed
replica or with a disqualified disk. A node that peers may take for a voter but that does not vote
reports that, once per reason.
See: KIP-853 (UpdateRaftVoter, controller.quorum.auto.join.enable); ADR 30.
"""

from __future__ import annotations

from typing import assert_never

from quorum.control_records import Origin
from quorum.core.contract.events import (
    RequestRefused,
    SelfRegistrationAnswered,
    SelfRegistrationAsked,
    VotesNoMore,
)
from quorum.core.contract.reasons import NonVoterReason
from quorum.core.membership import voter_changes
from quorum.core.membership.voter_change_checks import default_listener
from quorum.core.messages.message_types import Request
from quorum.core.messages.voter_messages import (
    AddVoterRequest,
    RemoveVoterRequest,
    UpdateVoterRequest,
    VoterChangeResponse,
)
from quorum.core.protocol.refusals import (
    has_wrong_cluster,
    refusal_of_leader_request,
    refuse,
)
from quorum.core.protocol.requests import answered, next_attempt
from quorum.core.protocol.responses import learn_from_response
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.peer_requests import Purpose
from quorum.core.state.pending_change import ChangeKind, PeerAsker, PendingChange
from quorum.core.state.roles import Follower, Leader
from quorum.core.state.timers import Timer
from quorum.core.voters.versions import OWN_KRAFT_VERSIONS
from quorum.errors import ErrorCode
from quorum.types import ZERO_UUID, NodeId, Voter

_UNPROVEN = (
    "the sender is not proven: the leader met this process neither at the address of the voters' "
    "record nor at one of its bootstrap.servers, and certificates do not name nodes; an operator "
    "can ask for it: quorate quorum update-voter, add-voter, remove-voter"
)
SELF_REGISTRATION_FETCH_TIMEOUTS = 2
"""Fetch timeouts between two checks of the self registration, and before the first check."""


def refresh(core: CoreState) -> None:
    """Determine the needed change again if the voter set or our endpoints have changed."""
    voters = core.voters.latest
    need = core.registration
    if need.basis is voters:
        return
    need.basis = voters
    need.change = _wish(core)
    reason = _why_not_voting(core)
    if reason != need.problem:
        need.problem = reason
        if reason is not None:
            core.event(VotesNoMore(core.me, reason))


def _why_not_voting(core: CoreState) -> NonVoterReason | None:
    """Return why this disk does not vote although its node id or the disk once did; or None."""
    voters = core.voters.latest
    known = voters.get(core.me.id)
    if core.me in voters.removed:
        return NonVoterReason.REMOVED
    if known is not None and not known.key.matches(core.me):
        return NonVoterReason.OTHER_DIRECTORY
    return None


def _wish(core: CoreState) -> ChangeKind | None:
    voters, me = core.voters.latest, core.me
    known = voters.get(me.id)
    if known is not None and known.key.matches(me):
        return ChangeKind.UPDATE if _self_registration(core) != known else None
    if not core.config.auto_join or me.id < 0 or me.directory_id == ZERO_UUID or not len(voters):
        return None
    if core.election.disqualified:
        # Its entry would be refused, after the older entry of its node id was removed.
        return None
    if me in voters.removed or not _self_registration(core).endpoints:
        return None
    return ChangeKind.ADD if known is None else ChangeKind.REMOVE


def _self_registration(core: CoreState) -> Voter:
    """Return the correct entry of this disk; unknown endpoints stay as they are."""
    known = core.voters.latest.get(core.me.id)
    if known is None or not known.key.matches(core.me):
        known = Voter(core.me)
    listener = default_listener(core)
    reached_at = tuple(
        each for each in core.process.endpoints if each.name == listener and each.port > 0
    )
    return Voter(
        core.me,
        reached_at or known.endpoints,
        OWN_KRAFT_VERSIONS.lowest,
        OWN_KRAFT_VERSIONS.highest,
        known.tagged,
    )


# The requesting side.


def poll_self_registration(core: CoreState, role: Follower) -> None:
    """Request the needed change from the leader, every few fetch timeouts."""
    refresh(core)
    change = core.registration.change
    if change is None:
        role.registration.due_ms = 0
        return
    pause_ms = SELF_REGISTRATION_FETCH_TIMEOUTS * core.config.fetch_timeout_ms
    if not role.registration.due_ms:
        role.registration.due_ms = core.now_ms + pause_ms
    if core.now_ms < role.registration.due_ms:
        return
    core.fired(Timer.SELF_REGISTRATION if change is ChangeKind.UPDATE else Timer.AUTO_JOIN)
    request = _request(core, change, next_attempt(core, role.registration))
    role.registration.due_ms = core.now_ms + pause_ms
    core.event(SelfRegistrationAsked(change.value, role.leader_id))
    core.send(role.leader_id, request)


def self_registration_due_ms(core: CoreState, role: Follower) -> int:
    """Return when ``poll_self_registration`` has work to do next."""
    return NEVER_MS if core.registration.change is None else role.registration.due_ms


def _request(core: CoreState, wish: ChangeKind, request_id: int) -> Request:
    known, entry = core.voters.latest.get(core.me.id), _self_registration(core)
    if known is None:
        return AddVoterRequest(request_id, core.cluster_id, entry, core.epoch)
    if wish is ChangeKind.REMOVE:
        return RemoveVoterRequest(request_id, core.cluster_id, core.me, known.key, core.epoch)
    return UpdateVoterRequest(request_id, core.cluster_id, entry, core.epoch)


def on_voter_change_response(
    core: CoreState, sender: NodeId, response: VoterChangeResponse
) -> None:
    """Report the leader's answer; the voter set shows the result."""
    if answered(core, sender, response, Purpose.SELF_REGISTRATION) is None:
        return
    if learn_from_response(core, sender, response):
        core.event(SelfRegistrationAnswered(response.error, response.message))


# The leader's side.


def poll_as_leader(core: CoreState, leader: Leader) -> None:
    """Update the leader's own entry too; no requester waits for the answer."""
    refresh(core)
    is_free = leader.takes_writes and leader.change is None
    is_settled = core.voters.latest_offset < core.high_watermark
    if core.registration.change is ChangeKind.UPDATE and is_free and is_settled:
        own = _self_registration(core)
        voter_changes.begin(
            core, PendingChange(ChangeKind.UPDATE, own, None, origin=_origin(core.me.id))
        )


def on_voter_request(
    core: CoreState,
    sender: NodeId,
    request: UpdateVoterRequest | AddVoterRequest | RemoveVoterRequest,
    *,
    is_proven: bool,
) -> None:
    """Handle a replica's request about its own entry like an operator's request.

    It is refused unless its author is proven (ADR 52): votes and acknowledgements count from
    whichever process answers at a voter's address. A process that could move an address without
    proof could vote in the voter's name again and again.
    """
    error = _refusal(core, request)
    if error is not None:
        refuse(core, sender, request, error)
        return
    if not is_proven:
        core.event(RequestRefused(sender, type(request).__name__, ErrorCode.INVALID_REQUEST))
        core.send(
            sender,
            VoterChangeResponse(
                request.request_id,
                ErrorCode.INVALID_REQUEST,
                core.leader_id,
                core.epoch,
                _UNPROVEN,
                core.answering_endpoints(),
            ),
        )
        return
    match request:
        case UpdateVoterRequest():
            kind, voter = ChangeKind.UPDATE, request.voter
        case AddVoterRequest():
            kind, voter = ChangeKind.ADD, request.voter
        case RemoveVoterRequest():
            kind, voter = ChangeKind.REMOVE, Voter(request.voter)
        case _:
            assert_never(request)
    asker = PeerAsker(sender, request.request_id)
    voter_changes.begin(
        core,
        PendingChange(
            kind,
            voter,
            asker,
            ack_when_committed=kind is ChangeKind.REMOVE,
            origin=_origin(sender),
        ),
    )


def _origin(node_id: NodeId) -> Origin:
    """The node asks for itself: no person is known."""
    return Origin(reason=f"self registration of node {node_id}")


def _refusal(
    core: CoreState, request: UpdateVoterRequest | AddVoterRequest | RemoveVoterRequest
) -> ErrorCode | None:
    if has_wrong_cluster(core, request.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    role = core.role
    leads = isinstance(role, Leader) and role.established
    error = refusal_of_leader_request(core, request.epoch, leads=leads)
    if error is not None:
        return error
    if isinstance(request, RemoveVoterRequest) and (
        request.replica.id != request.voter.id or request.replica.matches(request.voter)
    ):
        # A peer may request changes for its own node id only.
        return ErrorCode.INVALID_REQUEST
    return None

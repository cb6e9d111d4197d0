"""What every response has in common: matching it to its request, and learning the leader from it.

See: docs/reference/handlers.md, "Responses".
"""

from __future__ import annotations

from quorum.core.contract.reasons import IgnoreReason, RoleChangeCause, RoleChangeReason
from quorum.core.messages.fetch_messages import FetchResponse
from quorum.core.messages.message_types import Response
from quorum.core.messages.read_messages import ReadRound
from quorum.core.protocol.epoch_claims import is_out_of_reach
from quorum.core.protocol.leader_endpoints import learn_endpoints
from quorum.core.protocol.refusals import ignore
from quorum.core.protocol.requests import find_request
from quorum.core.protocol.role_transitions import follow_hint
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.known_leader import NamedBy
from quorum.core.state.peer_requests import InFlight, Purpose
from quorum.core.state.roles import Follower
from quorum.errors import ErrorCode
from quorum.types import NodeId


def learn_from_response(core: CoreState, sender: NodeId, response: Response) -> bool:
    """Adopt a newer epoch or an unknown leader; return whether the response is of this epoch.

    False means that the response must not be used further. It is stale, it moved this node to a
    newer epoch, or it contradicts what this node knows.
    """
    role = core.role
    if (
        isinstance(role, Follower)
        and response.epoch == core.epoch
        and response.leader_id == role.leader_id
    ):
        # The hot path: nearly every response names the known leader.
        if response.leader_endpoints or core.known_leader.basis is not core.voters.latest:
            learn_endpoints(core, response.leader_endpoints, _named_by(core, sender, response))
        return True
    if is_out_of_reach(core, response.epoch):
        detail = f"epoch {response.epoch}"
        ignore(core, sender, response, IgnoreReason.EPOCH_OUT_OF_REACH, detail, is_violation=True)
        return False
    if response.epoch < core.epoch:
        ignore(core, sender, response, IgnoreReason.STALE_EPOCH, f"epoch {response.epoch}")
        return False
    epoch = core.epoch
    is_consistent = follow_hint(
        core,
        response.leader_id,
        response.epoch,
        response.leader_endpoints,
        cause=RoleChangeCause(RoleChangeReason.RESPONSE, sender),
        named_by=_named_by(core, sender, response),
    )
    if not is_consistent:
        ignore(
            core,
            sender,
            response,
            IgnoreReason.SECOND_LEADER,
            f"{response.leader_id} of epoch {response.epoch}, not {core.leader_id} of {core.epoch}",
            is_violation=True,
        )
        return False
    return core.epoch == epoch == response.epoch


def _named_by(core: CoreState, sender: NodeId, response: Response) -> NamedBy:
    """Return who named the endpoints in ``response``, which may come from a bootstrap server."""
    if sender == response.leader_id:
        is_doubtful = sender == core.leader_id and core.known_leader.is_doubtful
        return NamedBy.ANSWERER if is_doubtful else NamedBy.LEADER
    if isinstance(response, FetchResponse) and response.error == ErrorCode.NONE:
        # Besides the leader only relays serve a Fetch, and they name themselves in the path.
        return NamedBy.PEER if response.path else NamedBy.LEADER
    return NamedBy.PEER


def take_in_flight(
    core: CoreState, sender: NodeId, response: Response, purpose: Purpose
) -> InFlight | None:
    """Return the request that ``response`` answers and end its flight; None if none was sent."""
    flight = find_request(core, sender, response, purpose)
    if not isinstance(flight, InFlight):
        return None
    if not flight.has_left:
        ignore(core, sender, response, IgnoreReason.NEVER_ASKED)
        return None
    core.requests.end_flight()
    return flight


def note_leader_contact(
    core: CoreState, role: Follower, peer: NodeId, read_round: ReadRound
) -> None:
    """Restart the fetch timer after an answer of the leader, and remember its read round."""
    role.has_fetched = True
    role.has_campaigned = False
    role.fetch_deadline_ms = core.now_ms + role.fetch_timeout_ms
    role.campaign_at_ms = NEVER_MS
    core.known_leader.lost = None
    following = core.following
    following.peers.succeeded(peer)
    following.upstream.succeeded(peer)
    if read_round.epoch == core.epoch and read_round.number > role.read_round.number:
        role.read_round = read_round

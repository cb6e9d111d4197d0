"""Resignation: EndQuorumEpoch, from a resigned leader to its preferred successors.

See: KIP-595 (EndQuorumEpoch) with its back-off by position.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorum.core.contract.reasons import IgnoreReason, RoleChangeCause, RoleChangeReason
from quorum.core.election import campaign
from quorum.core.leadership import transfer
from quorum.core.messages.epoch_messages import EndQuorumEpochRequest, EndQuorumEpochResponse
from quorum.core.protocol.epoch_claims import has_leader_contact, refusal_of_leader_claim
from quorum.core.protocol.refusals import (
    has_wrong_cluster,
    ignore,
    refusal_of_voter_request,
    refuse,
)
from quorum.core.protocol.requests import find_request, is_to_be_sent, next_attempt, retry_later
from quorum.core.protocol.responses import learn_from_response
from quorum.core.protocol.role_transitions import become_unattached, follow_hint, lose_leader
from quorum.core.state.core_state import CoreState
from quorum.core.state.known_leader import NamedBy
from quorum.core.state.peer_requests import Purpose
from quorum.core.state.roles import Follower, Prospective, Resigned
from quorum.core.state.timers import Timer
from quorum.errors import ErrorCode
from quorum.types import NodeId, ReplicaKey


def successor_backoff_ms(successors: Sequence[ReplicaKey], me: ReplicaKey, backoff_max: int) -> int:
    """Return how long, in milliseconds, the replica ``me`` waits before it campaigns.

    The first in the list campaigns at once, later ones wait exponentially longer, at most
    ``backoff_max``. A replica that is not in the list waits longest.
    """
    count = len(successors)
    for position, successor in enumerate(successors):
        if successor.matches(me):
            if position == 0:
                return 0
            return min(backoff_max, (backoff_max >> (count - 1)) << (position - 1))
    return backoff_max


def on_end_request(
    core: CoreState, sender: NodeId, request: EndQuorumEpochRequest, *, is_proven: bool
) -> None:
    """Campaign after the back-off that the leader's EndQuorumEpoch implies."""
    error = (
        ErrorCode.INCONSISTENT_CLUSTER_ID
        if has_wrong_cluster(core, request.cluster_id)
        else refusal_of_voter_request(core, request.epoch, request.leader.id)
    )
    if error is None and request.campaign_now and not _is_successor(core, request):
        error = ErrorCode.INVALID_VOTER_KEY
    if error is None:
        error = refusal_of_leader_claim(core, request.leader, request.epoch)
    if error is None and not is_proven and _would_depose(core, request):
        error = ErrorCode.INELIGIBLE_REPLICA
    if error is None and not follow_hint(
        core,
        request.leader.id,
        request.epoch,
        request.leader_endpoints,
        cause=RoleChangeCause(RoleChangeReason.END_QUORUM_EPOCH),
        named_by=NamedBy.LEADER if is_proven else NamedBy.UNPROVEN,
    ):
        ignore(core, sender, request, IgnoreReason.SECOND_LEADER, is_violation=True)
        error = ErrorCode.INVALID_REQUEST
    if error is not None:
        refuse(core, sender, request, error)
        return
    if request.campaign_now:
        _campaign_now(core, sender, request)
        return
    role = core.role
    wait_ms = successor_backoff_ms(
        request.preferred_successors, core.me, core.config.election_backoff_max_ms
    )
    if isinstance(role, Prospective):
        role.fail_fast = True
        role.retry_ms = min(role.retry_ms, core.now_ms + wait_ms)
    else:
        lose_leader(core, wait_ms)
    _agree(core, sender, request)


def _would_depose(core: CoreState, request: EndQuorumEpochRequest) -> bool:
    """Whether a forged request of this kind would cost an election (ADR 52).

    A campaign without a pre-vote always does. A leader in contact reports its resignation itself,
    in its answer to the held Fetch.
    """
    role = core.role
    return request.campaign_now or (isinstance(role, Follower) and has_leader_contact(core, role))


def _is_successor(core: CoreState, request: EndQuorumEpochRequest) -> bool:
    """Whether the leader names this voter as its first successor."""
    successors = request.preferred_successors
    return bool(successors) and successors[0].matches(core.me)


def _campaign_now(core: CoreState, sender: NodeId, request: EndQuorumEpochRequest) -> None:
    """Campaign without a pre-vote at the leader's request, or refuse."""
    if campaign.why_not_campaign(core) is not None:
        refuse(core, sender, request, ErrorCode.INELIGIBLE_REPLICA)
        return
    _agree(core, sender, request)
    campaign.campaign_now(core, request.leader.id, request.origin)


def _agree(core: CoreState, sender: NodeId, request: EndQuorumEpochRequest) -> None:
    core.send(
        sender,
        EndQuorumEpochResponse(
            request.request_id,
            ErrorCode.NONE,
            core.leader_id,
            core.epoch,
            core.answering_endpoints(),
        ),
    )


def poll_resigned(core: CoreState, role: Resigned) -> None:
    """Send EndQuorumEpoch to every voter; leave the epoch when the election timer expires.

    Leaving raises the epoch, so that no answer names this node the leader of it again. A node
    that is shutting down stays and waits for another leader.
    """
    if core.now_ms >= role.election_deadline_ms and not core.process.is_shutting_down:
        core.fired(Timer.RESIGNATION)
        cause = RoleChangeCause(RoleChangeReason.RESIGNED_EPOCH_LEFT)
        become_unattached(core, core.epoch + 1, cause=cause)
        return
    for voter_id, end_epoch in role.end_epochs.items():
        if not is_to_be_sent(core, end_epoch):
            continue
        core.send(
            voter_id,
            EndQuorumEpochRequest(
                next_attempt(core, end_epoch),
                core.cluster_id,
                core.me,
                core.epoch,
                role.preferred_successors,
                core.answering_endpoints(),
            ),
        )


def on_end_response(core: CoreState, sender: NodeId, response: EndQuorumEpochResponse) -> None:
    """Record a voter's acknowledgement of the resignation, or learn a newer epoch."""
    end_epoch = find_request(core, sender, response, Purpose.END_EPOCH, Purpose.TRANSFER)
    if end_epoch is None:
        return
    if end_epoch.purpose is Purpose.TRANSFER:
        transfer.on_response(core, sender, response)
        return
    core.requests.close(end_epoch)
    role = core.role
    is_current = learn_from_response(core, sender, response)
    if core.role is not role or not isinstance(role, Resigned):
        return
    if is_current and response.error == ErrorCode.NONE:
        del role.end_epochs[sender]
    else:
        retry_later(core, end_epoch)

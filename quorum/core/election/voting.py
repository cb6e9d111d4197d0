"""Granting votes: which vote and pre-vote requests this replica grants.

A grant of a vote is a promise, and leaves only when the vote is durable (``CoreState.send``).
A pre-vote promises nothing.

See: Raft sections 5.2 and 5.4.1; KIP-996 (pre-vote); KIP-630 (positions, 630.13); ``campaign``.
"""

from __future__ import annotations

from quorum.core.contract.events import VoteDecided
from quorum.core.contract.reasons import (
    Rejection,
    RoleChangeCause,
    RoleChangeReason,
    VoteRejection,
)
from quorum.core.election.bootstrapping import why_not_vote
from quorum.core.election.campaign import begin_campaign, poll_unattached, why_not_campaign
from quorum.core.messages.vote_messages import VoteRequest, VoteResponse
from quorum.core.protocol.epoch_claims import has_leader_contact, why_not_considered
from quorum.core.protocol.refusals import (
    OFFSET_MAX,
    has_wrong_cluster,
    is_addressed_to,
    refusal_of_voter_request,
    refuse,
)
from quorum.core.protocol.role_transitions import become_unattached
from quorum.core.state.core_state import CoreState
from quorum.core.state.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from quorum.core.state.timers import Timer
from quorum.errors import ErrorCode
from quorum.types import NO_NODE, ZERO_UUID, ElectionState, NodeId, ReplicaKey

_YIELD_DIVISOR = 4


def on_vote_request(core: CoreState, sender: NodeId, request: VoteRequest) -> None:
    """Evaluate a vote or pre-vote request."""
    error = _refusal_of_vote(core, request)
    if error is not None:
        refuse(core, sender, request, error)
        return
    if not is_addressed_to(core, request.voter):
        refuse(core, sender, request, ErrorCode.INVALID_VOTER_KEY)
        return
    if request.pre_vote:
        _campaign_if_due(core)
    rejection = why_not_considered(core, request)
    is_considered = rejection is None
    if is_considered:
        if request.epoch > core.epoch:
            cause = RoleChangeCause(RoleChangeReason.VOTE_REQUEST, request.candidate.id)
            become_unattached(core, request.epoch, cause=cause)
        rejection = why_not_grant(core, request)
    granted = rejection is None
    if granted and not request.pre_vote:
        _record_vote(core, request.candidate)
    reason, detail = rejection if rejection is not None else (None, "")
    core.event(
        VoteDecided(request.candidate, request.epoch, request.pre_vote, granted, reason, detail)
    )
    if is_considered and request.pre_vote and isinstance(core.role, Prospective):
        _meet_another_campaign(core, core.role, request, granted=granted)
    elif is_considered and not request.last.is_at_least(core.position):
        _campaign_in_its_place(core)
    core.send(
        sender,
        VoteResponse(
            request.request_id,
            ErrorCode.NONE,
            core.leader_id,
            core.epoch,
            granted,
            core.answering_endpoints(),
        ),
    )


def _campaign_if_due(core: CoreState) -> None:
    """Let an expired timer fire before another voter's campaign is evaluated.

    Otherwise it fires right after, and this voter campaigns against the candidate it just granted.
    """
    role = core.role
    if isinstance(role, Unattached):
        poll_unattached(core, role)
    elif (
        isinstance(role, Follower)
        and core.now_ms >= role.fetch_deadline_ms
        and not why_not_campaign(core)
    ):
        core.fired(Timer.FETCH)
        begin_campaign(core, fail_fast=False, reason=RoleChangeReason.FETCH_TIMEOUT)


def _meet_another_campaign(
    core: CoreState, role: Prospective, request: VoteRequest, *, granted: bool
) -> None:
    """Settle which of two concurrent campaigns goes first, so that votes do not split.

    The candidate with more records goes first; between equals the lower id does. The other one
    grants the pre-vote and delays its own campaign, once and for a bounded time. No request is
    refused because of this rule, so a failed campaign costs only that delay. See: ADR 37.
    """
    candidate = request.candidate.id
    ballot = role.ballots.get(candidate)
    if not granted:
        # It lacks records of ours. If it rejected us, it still followed the leader at that time.
        if ballot is not None and not ballot.granted:
            core.requests.close(ballot)
            ballot.granted, ballot.due_ms = None, core.now_ms
    elif not role.yield_until_ms and _goes_first(core, request):
        role.yield_until_ms = core.now_ms + max(
            1, core.config.election_timeout_ms // _YIELD_DIVISOR
        )


def _goes_first(core: CoreState, request: VoteRequest) -> bool:
    if core.position.is_at_least(request.last):
        return request.candidate.id < core.me.id
    return True


def _campaign_in_its_place(core: CoreState) -> None:
    """Campaign at once if the leader is gone and the candidate's log is behind ours.

    The pause before a campaign keeps equal candidates apart, and this candidate is not equal. The
    rule also covers a voter that campaigned too early: its leader has been silent ever since.
    """
    role = core.role
    if isinstance(role, Follower):
        if core.known_leader.lost is not None:
            role.campaign_at_ms = core.now_ms
        elif role.has_campaigned:
            role.fetch_deadline_ms = core.now_ms


def _refusal_of_vote(core: CoreState, request: VoteRequest) -> ErrorCode | None:
    if has_wrong_cluster(core, request.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    last = request.last
    # A real candidate has raised its epoch above that of its last record; a pre-candidate has not.
    epoch_limit = request.epoch if request.pre_vote else request.epoch - 1
    if not 0 <= last.offset <= OFFSET_MAX or not 0 <= last.epoch <= epoch_limit:
        return ErrorCode.INVALID_REQUEST
    return refusal_of_voter_request(core, request.epoch, request.candidate.id)


def why_not_grant(core: CoreState, request: VoteRequest) -> Rejection | None:
    """Return why the request gets no (pre-)vote; None when it does.

    A repeated request of the candidate already voted for is granted without another comparison of
    the logs: the first answer may have been lost.
    """
    unfit = why_not_vote(core)
    if unfit is not None:
        return unfit
    role = core.role
    if core.chain.quarantined_log:
        return VoteRejection.LOG_QUARANTINED, ""
    if isinstance(role, Leader):
        return VoteRejection.LEADS_EPOCH, ""
    if core.disk.watch.is_stalled:
        # No vote could follow such a pre-vote, so it would only raise epochs.
        return VoteRejection.DISK_STALLED, ""
    if not request.pre_vote:
        if isinstance(role, Follower | Candidate | Resigned):
            return VoteRejection.ROLE_OF_EPOCH, type(role).__name__
        voted = core.election.voted
        if voted is not None:
            is_same = voted.id == request.candidate.id and (
                voted.directory_id in (ZERO_UUID, request.candidate.directory_id)
            )
            return None if is_same else (VoteRejection.VOTED_FOR_ANOTHER, f"node {voted.id}")
        if core.leader_id != NO_NODE:
            return VoteRejection.EPOCH_HAS_LEADER, f"leader {core.leader_id}"
    elif isinstance(role, Follower) and has_leader_contact(core, role):
        return VoteRejection.LEADER_CONTACT, f"leader {role.leader_id}"
    if not request.last.is_at_least(core.position):
        return VoteRejection.LOG_BEHIND, f"{request.last} is below {core.position}"
    floor = core.election.vote_floor
    if floor is not None and not request.last.is_at_least(floor):
        return VoteRejection.BELOW_VOTE_FLOOR, f"{request.last} is below {floor}"
    return None


def _record_vote(core: CoreState, candidate: ReplicaKey) -> None:
    role = core.role
    if core.election.voted is not None:
        return
    if isinstance(role, Unattached):
        state = core.election
        core.save_election(ElectionState(state.epoch, state.leader_id, candidate, state.vote_floor))
        # An unknown candidate may be a voter just added, but must not delay elections for ever.
        if core.voters.knows(candidate):
            role.election_deadline_ms = core.random_election_deadline()
    else:
        cause = RoleChangeCause(RoleChangeReason.VOTE_GRANTED, candidate.id)
        become_unattached(core, core.epoch, voted=candidate, cause=cause)

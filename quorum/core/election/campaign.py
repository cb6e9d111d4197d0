"""Campaigns: pre-votes, votes and their tallies.

A pre-vote asks without raising the epoch and promises nothing. A vote is a promise: request
and grant leave only when the epoch and the vote are durable (``CoreState.send``).

Fail-fast mode (ADR 8): a voter whose leader's process is gone campaigns soon. It asks the voters
that rejected it again after a short random pause, because they may not have noticed yet.

See: Raft sections 5.2 and 5.4.1; KIP-996 (pre-vote); KIP-630 (positions, 630.13); ``voting``.
"""

from __future__ import annotations

from quorum.control_records import Origin
from quorum.core.contract.events import CampaignRefused
from quorum.core.contract.reasons import (
    CampaignObstacle,
    RoleChangeCause,
    RoleChangeReason,
)
from quorum.core.election.bootstrapping import why_not_bootstrapped
from quorum.core.messages.vote_messages import VoteRequest, VoteResponse
from quorum.core.protocol.requests import answered, is_to_be_sent, next_attempt, retry_later
from quorum.core.protocol.responses import learn_from_response
from quorum.core.protocol.role_transitions import (
    become_candidate,
    become_follower,
    become_leader,
    become_prospective,
    become_unattached,
    new_ballots,
)
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.peer_requests import Purpose
from quorum.core.state.roles import Ballot, Candidate, Follower, Leader, Prospective, Unattached
from quorum.core.state.timers import Timer
from quorum.core.voters import majority
from quorum.core.voters.majority import VoteResult
from quorum.errors import ErrorCode
from quorum.types import EPOCH_MAX, NO_NODE, NodeId


def why_not_campaign(core: CoreState) -> tuple[CampaignObstacle, str] | None:
    """Return why this node may not campaign, and the detail; None when it may."""
    if not core.may_campaign:
        return CampaignObstacle.NOT_A_VOTER, ""
    unfounded = why_not_bootstrapped(core)
    if unfounded:
        return CampaignObstacle.NOT_BOOTSTRAPPED, unfounded
    if core.process.is_shutting_down:
        return CampaignObstacle.SHUTTING_DOWN, ""
    if core.disk.watch.is_stalled:
        return CampaignObstacle.DISK_STALLED, ""
    if core.chain.quarantined_log:
        return CampaignObstacle.LOG_QUARANTINED, ""
    if core.process.replay_stopped:
        return CampaignObstacle.REPLAY_STOPPED, core.process.replay_stopped
    if core.epoch >= EPOCH_MAX:
        return CampaignObstacle.EPOCHS_USED_UP, f"epoch {core.epoch}"
    floor = core.election.vote_floor
    if floor is not None and not core.log.end.is_at_least(floor):
        return CampaignObstacle.BELOW_VOTE_FLOOR, f"{core.log.end} is below {floor}"
    return None


def begin_campaign(core: CoreState, *, fail_fast: bool, reason: RoleChangeReason) -> bool:
    """Ask for pre-votes if this node may campaign; return whether it did."""
    obstacle = why_not_campaign(core)
    if obstacle is not None:
        core.event(CampaignRefused(core.epoch, *obstacle))
        return False
    become_prospective(core, fail_fast=fail_fast, cause=RoleChangeCause(reason))
    return True


def campaign_now(core: CoreState, leader_id: NodeId, origin: Origin | None = None) -> None:
    """Campaign without a pre-vote at the request of leader ``leader_id``.

    No live leader needs protection then. ``origin`` says who asked that leader for the transfer.

    Precondition: ``why_not_campaign`` is None, and the node is ``Follower`` or ``Prospective``.
    """
    cause = RoleChangeCause(RoleChangeReason.CAMPAIGN_REQUESTED, leader_id)
    if isinstance(core.role, Follower):
        become_prospective(core, fail_fast=True, cause=cause)
    become_candidate(core, fail_fast=True, cause=cause)
    if isinstance(core.role, Candidate):
        core.role.origin = origin


def on_vote_response(core: CoreState, sender: NodeId, response: VoteResponse) -> None:
    """Count an answer to our vote or pre-vote request."""
    role = core.role
    ballot = answered(core, sender, response, Purpose.VOTE)
    if not isinstance(ballot, Ballot):
        return
    is_current = learn_from_response(core, sender, response)
    if core.role is not role or not isinstance(role, Prospective | Candidate):
        return
    if not is_current or response.error != ErrorCode.NONE:
        retry_later(core, ballot)
        return
    ballot.granted = response.granted
    if not response.granted and role.fail_fast and role.retry_ms == NEVER_MS:
        role.retry_ms = core.now_ms + core.rng.randint(0, core.config.lost_leader_retry_ms)


def poll_unattached(core: CoreState, role: Unattached) -> None:
    """Campaign when the election timer has expired."""
    if not core.may_campaign or core.now_ms < role.election_deadline_ms:
        return
    core.fired(Timer.ELECTION)
    if not begin_campaign(core, fail_fast=False, reason=RoleChangeReason.ELECTION_TIMEOUT):
        role.election_deadline_ms = core.random_election_deadline()


def poll_prospective(core: CoreState, role: Prospective) -> None:
    """Count pre-votes, ask for missing ones, or give up the round."""
    result = _tally(core, role)
    if why_not_campaign(core) is not None:
        _return_from_prospective(core, RoleChangeReason.CAMPAIGN_OBSTACLE)
    elif result is VoteResult.WON and core.now_ms >= role.yield_until_ms:
        if role.yield_until_ms:
            core.fired(Timer.YIELD)
        cause = RoleChangeCause(RoleChangeReason.PRE_VOTE_WON)
        become_candidate(core, fail_fast=role.fail_fast, cause=cause)
    elif core.now_ms >= role.election_deadline_ms:
        core.fired(Timer.PRE_VOTE_ROUND)
        _return_from_prospective(core, RoleChangeReason.ELECTION_TIMEOUT)
    elif core.now_ms >= role.retry_ms:
        core.fired(Timer.LOST_LEADER_RETRY)
        role.ballots = new_ballots(core)
        role.retry_ms = NEVER_MS
        _ask(core, role.ballots, pre_vote=True)
    elif result is VoteResult.LOST and not role.fail_fast:
        _return_from_prospective(core, RoleChangeReason.PRE_VOTE_LOST)
    else:
        _ask(core, role.ballots, pre_vote=True)


def _return_from_prospective(core: CoreState, reason: RoleChangeReason) -> None:
    leader_id, cause = core.leader_id, RoleChangeCause(reason)
    if leader_id == NO_NODE:
        become_unattached(core, core.epoch, cause=cause)
        return
    # Not enough voters confirmed in time that the leader is gone.
    core.known_leader.lost = None
    become_follower(core, leader_id, core.epoch, (), cause=cause)
    if isinstance(core.role, Follower):
        core.role.has_campaigned = True


def poll_candidate(core: CoreState, role: Candidate) -> None:
    """Count votes, ask for missing ones, or start over."""
    result = _tally(core, role)
    if result is VoteResult.WON:
        granting = [key for key, ballot in role.ballots.items() if ballot.granted]
        own = [core.me.id] if core.is_voter else []
        become_leader(core, tuple(sorted([*granting, *own])))
        if isinstance(core.role, Leader):
            core.role.origin = role.origin
    elif core.now_ms >= min(role.retry_ms, role.election_deadline_ms):
        is_over = core.now_ms >= role.election_deadline_ms
        core.fired(Timer.VOTE_ROUND if is_over else Timer.LOST_LEADER_RETRY)
        if not begin_campaign(core, fail_fast=role.fail_fast, reason=RoleChangeReason.VOTE_TIMEOUT):
            role.election_deadline_ms = core.random_election_deadline()
            role.retry_ms = NEVER_MS
    elif result is not VoteResult.LOST:
        _ask(core, role.ballots, pre_vote=False)


def _tally(core: CoreState, role: Prospective | Candidate) -> VoteResult:
    """Return the state of the round; a node that is being removed does not count its own vote."""
    answers = [ballot.granted for ballot in role.ballots.values()]
    own = int(core.is_voter)
    return majority.vote_result(
        len(answers) + own, granted=answers.count(True) + own, rejected=answers.count(False)
    )


def asks_voters(core: CoreState, role: Prospective | Candidate) -> bool:
    """Return whether the round is still open, so that missing answers are asked for."""
    if _tally(core, role) is not VoteResult.LOST:
        return True
    return isinstance(role, Prospective) and role.fail_fast


def _ask(core: CoreState, ballots: dict[NodeId, Ballot], *, pre_vote: bool) -> None:
    """Send the request to every voter that is due and has not answered in this round."""
    for voter_id, ballot in ballots.items():
        if ballot.granted is not None or not is_to_be_sent(core, ballot):
            continue
        core.send(
            voter_id,
            VoteRequest(
                next_attempt(core, ballot),
                core.cluster_id,
                core.me,
                ballot.voter,
                core.epoch,
                core.position,
                pre_vote,
            ),
        )

"""Campaigns: pre-votes, votes and their tallies.

A pre-vote asks without raising the epoch and promises nothing. A vote is a promise: request
and grant leave only when the epoch and the vote are durable (``CoreState.send``).

Fail-fast mode (ADR 8): a voter whose leader's process is gone campaigns soon. It asks the voters
that rejected it again after a short random pause, because they may not have noticed yet.

See: Raft sections 5.2 and 5.4.1; KIP-996 (pre-vote); KIP-630 (positions, 630.13); ``voting``.
"""

from __future__ import annotations

from quorum.core.contract.events import CampaignRefused
from quorum.core.election.bootstrapping import why_not_bootstrapped, why_not_vote
from quorum.core.messages.vote_messages import VoteRequest, VoteResponse
from quorum.core.protocol.refusals import EPOCH_MAX
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
from quorum.core.state.roles import Ballot, Candidate, Follower, Prospective, Unattached
from quorum.core.state.timers import Timer
from quorum.core.voters import majority
from quorum.core.voters.majority import VoteResult
from quorum.errors import ErrorCode
from quorum.types import NO_NODE, NodeId


def why_not_campaign(core: CoreState) -> str:
    """Return why this node may not campaign; empty when it may."""
    if not core.may_campaign:
        return why_not_vote(core) or "not a voter"
    unfounded = why_not_bootstrapped(core)
    if unfounded:
        return unfounded
    if core.process.is_shutting_down:
        return "shutting down"
    if core.disk.watch.is_stalled:
        return "the disk does not complete its writes"
    if core.chain.quarantined_log:
        return "its log is quarantined"
    if core.process.replay_stopped:
        return core.process.replay_problem
    if core.epoch >= EPOCH_MAX:
        return f"no epoch above {core.epoch} is left"
    floor = core.election.vote_floor
    if floor is not None and not core.log.end.is_at_least(floor):
        return f"log end {core.log.end} is below the vote floor {floor}"
    return ""


def stand(core: CoreState, *, fail_fast: bool, reason: str) -> bool:
    """Ask for pre-votes if this node may campaign; return whether it did."""
    obstacle = why_not_campaign(core)
    if obstacle:
        core.event(CampaignRefused(core.epoch, obstacle))
        return False
    become_prospective(core, fail_fast=fail_fast, reason=reason)
    return True


def campaign_now(core: CoreState, *, reason: str) -> None:
    """Campaign without a pre-vote at the leader's request: there is no live leader to protect.

    Precondition: ``why_not_campaign`` is empty, and the node is ``Follower`` or ``Prospective``.
    """
    if isinstance(core.role, Follower):
        become_prospective(core, fail_fast=True, reason=reason)
    become_candidate(core, fail_fast=True, reason=reason)


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
    if not stand(core, fail_fast=False, reason="the election timer expired"):
        role.election_deadline_ms = core.random_election_deadline()


def poll_prospective(core: CoreState, role: Prospective) -> None:
    """Count pre-votes, ask for missing ones, or give up the round."""
    result = _tally(core, role)
    obstacle = why_not_campaign(core)
    if obstacle:
        _return_from_prospective(core, obstacle)
    elif result is VoteResult.WON and core.now_ms >= role.yield_until_ms:
        if role.yield_until_ms:
            core.fired(Timer.YIELD)
        become_candidate(core, fail_fast=role.fail_fast, reason="a majority would elect it")
    elif core.now_ms >= role.election_deadline_ms:
        core.fired(Timer.PRE_VOTE_ROUND)
        _return_from_prospective(core, "the election timer expired")
    elif core.now_ms >= role.retry_ms:
        core.fired(Timer.LOST_LEADER_RETRY)
        role.ballots = new_ballots(core)
        role.retry_ms = NEVER_MS
        _ask(core, role.ballots, pre_vote=True)
    elif result is VoteResult.LOST and not role.fail_fast:
        _return_from_prospective(core, "a majority would not elect it")
    else:
        _ask(core, role.ballots, pre_vote=True)


def _return_from_prospective(core: CoreState, reason: str) -> None:
    leader_id = core.leader_id
    if leader_id == NO_NODE:
        become_unattached(core, core.epoch, reason=reason)
        return
    # Not enough voters confirmed in time that the leader is gone.
    core.known_leader.lost = None
    become_follower(core, leader_id, core.epoch, core.known_leader.endpoints, reason=reason)
    if isinstance(core.role, Follower):
        core.role.has_campaigned = True


def poll_candidate(core: CoreState, role: Candidate) -> None:
    """Count votes, ask for missing ones, or start over."""
    result = _tally(core, role)
    if result is VoteResult.WON:
        granting = [key for key, ballot in role.ballots.items() if ballot.granted]
        own = [core.me.id] if core.is_voter else []
        become_leader(core, tuple(sorted([*granting, *own])))
    elif core.now_ms >= min(role.retry_ms, role.election_deadline_ms):
        is_over = core.now_ms >= role.election_deadline_ms
        core.fired(Timer.VOTE_ROUND if is_over else Timer.LOST_LEADER_RETRY)
        if not stand(core, fail_fast=role.fail_fast, reason="was not elected in time"):
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

"""Getting elected and electing: pre-votes, votes, their grants and tallies.

A pre-vote asks without raising the epoch and promises nothing. A vote is a promise: request
and grant leave only when the epoch and the vote are durable (``CoreState.send``).

Fail-fast mode (ADR 8): a voter whose leader's process is gone asks soon, and asks those
that rejected it again after a short random pause, because they may not have noticed yet.

See: Raft sections 5.2 and 5.4.1; KIP-996 (pre-vote); KIP-630 (positions, 630.13).
"""

from __future__ import annotations

from quorum.core import majority
from quorum.core.epoch_claims import hears_leader, why_not_hear
from quorum.core.events import StandingRefused, VoteDecided
from quorum.core.founding import why_not_founded, why_not_vote
from quorum.core.held_fetches import NEVER_MS
from quorum.core.majority import VoteResult
from quorum.core.peers import backoff_ms
from quorum.core.refusals import (
    EPOCH_MAX,
    OFFSET_MAX,
    has_wrong_cluster,
    ignore,
    is_addressed_to,
    refusal_of_voter_request,
    refuse,
)
from quorum.core.responses import learn_from_response
from quorum.core.roles import Ballot, Candidate, Follower, Leader, Prospective, Resigned, Unattached
from quorum.core.state import CoreState
from quorum.core.timers import Timer
from quorum.core.transitions import (
    become_candidate,
    become_follower,
    become_leader,
    become_prospective,
    become_unattached,
    new_ballots,
)
from quorum.core.vote_messages import VoteRequest, VoteResponse
from quorum.errors import ErrorCode
from quorum.types import NO_NODE, ZERO_UUID, ElectionState, NodeId, ReplicaKey

_YIELD_DIVISOR = 4


def why_not_stand(core: CoreState) -> str:
    """Why this node may not stand for election; empty when it may."""
    if not core.may_campaign:
        return why_not_vote(core) or "not a voter"
    unfounded = why_not_founded(core)
    if unfounded:
        return unfounded
    if core.is_shutting_down:
        return "shutting down"
    if core.disk.is_stalled:
        return "the disk does not complete its writes"
    if core.chain.condemned:
        return "its log is condemned"
    if core.replay_stopped:
        return f"replay has stopped: {core.replay_stopped}"
    if core.epoch >= EPOCH_MAX:
        return f"no epoch above {core.epoch} is left"
    floor = core.election.vote_floor
    if floor is not None and not core.log.end.is_at_least(floor):
        return f"log end {core.log.end} is below the vote floor {floor}"
    return ""


def stand(core: CoreState, *, fail_fast: bool, reason: str) -> bool:
    """Ask for pre-votes if this node may stand; whether it did."""
    obstacle = why_not_stand(core)
    if obstacle:
        core.event(StandingRefused(core.epoch, obstacle))
        return False
    become_prospective(core, fail_fast=fail_fast, reason=reason)
    return True


def stand_now(core: CoreState, *, reason: str) -> None:
    """Stand at the leader's own request: the pre-vote would protect nobody.

    Only for a node that follows or is about to stand, and that ``why_not_stand`` does not stop.
    """
    if isinstance(core.role, Follower):
        become_prospective(core, fail_fast=True, reason=reason)
    if isinstance(core.role, Prospective):
        become_candidate(core, fail_fast=True, reason=reason)


# Electing others.


def on_vote_request(core: CoreState, sender: NodeId, request: VoteRequest) -> None:
    """Judge a vote or pre-vote request."""
    error = _refusal_of_vote(core, request)
    if error is not None:
        refuse(core, sender, request, error)
        return
    if not is_addressed_to(core, request.voter):
        refuse(core, sender, request, ErrorCode.INVALID_VOTER_KEY)
        return
    if request.pre_vote:
        _campaign_if_due(core)
    reason = why_not_hear(core, request)
    is_heard = not reason
    if is_heard:
        if request.epoch > core.epoch:
            become_unattached(core, request.epoch, reason=f"vote request of {request.candidate.id}")
        reason = why_not_grant(core, request)
    granted = not reason
    if granted and not request.pre_vote:
        _record_vote(core, request.candidate)
    core.event(VoteDecided(request.candidate, request.epoch, request.pre_vote, granted, reason))
    if is_heard and request.pre_vote and isinstance(core.role, Prospective):
        _meet_another_campaign(core, core.role, request, granted=granted)
    elif is_heard and not request.last.is_at_least(core.position):
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
    """Let a timer that is over fire before another voter's campaign is looked at.

    It would fire right after, and this voter would campaign against the one it has just granted.
    """
    role = core.role
    if isinstance(role, Unattached):
        pursue_unattached(core, role)
    elif (
        isinstance(role, Follower)
        and core.now_ms >= role.fetch_deadline_ms
        and not why_not_stand(core)
    ):
        core.fired(Timer.FETCH)
        stand(core, fail_fast=False, reason="the fetch timer expired")


def _meet_another_campaign(
    core: CoreState, role: Prospective, request: VoteRequest, *, granted: bool
) -> None:
    """Two voters campaign at a time: settle which of them goes first, so that votes do not split.

    The one with more records, among equals the lower id. The other one grants the pre-vote and
    lets its own campaign wait, once and for a bounded time. Nothing is refused for it, so a
    campaign that comes to nothing costs that time and no more. See: ADR 37.
    """
    candidate = request.candidate.id
    ballot = role.ballots.get(candidate)
    if not granted:
        # It lacks records of ours. If it rejected us, it still followed the leader then.
        if ballot is not None and not ballot.granted:
            ballot.granted, ballot.request_id, ballot.due_ms = None, 0, core.now_ms
    elif not role.yield_until_ms and _goes_first(core, request):
        role.yield_until_ms = core.now_ms + max(
            1, core.config.election_timeout_ms // _YIELD_DIVISOR
        )


def _goes_first(core: CoreState, request: VoteRequest) -> bool:
    if core.position.is_at_least(request.last):
        return request.candidate.id < core.me.id
    return True


def _campaign_in_its_place(core: CoreState) -> None:
    """Campaign at once where the leader is gone and the candidate's log is behind ours.

    The pause before a campaign is there to keep equals apart, and the candidate is none. A voter
    whose own campaign came too early counts as well: its leader has been silent ever since.
    """
    role = core.role
    if isinstance(role, Follower):
        if core.lost_leader is not None:
            role.stand_at_ms = core.now_ms
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


def why_not_grant(core: CoreState, request: VoteRequest) -> str:
    """Why the request gets no (pre-)vote; empty when it does.

    A repeated request of the candidate already voted for is granted without looking at its
    log again: the answer to the first may have been lost.
    """
    unfit = why_not_vote(core)
    if unfit:
        return unfit
    role = core.role
    if core.chain.condemned:
        return "its log is condemned"
    if isinstance(role, Leader):
        return "leads this epoch"
    if core.disk.is_stalled:
        # A pre-vote that no vote could follow would only raise epochs.
        return "the disk does not complete its writes"
    if not request.pre_vote:
        if isinstance(role, Follower | Candidate | Resigned):
            return f"is {type(role).__name__} in this epoch"
        voted = core.election.voted
        if voted is not None:
            is_same = voted.id == request.candidate.id and (
                voted.directory_id in (ZERO_UUID, request.candidate.directory_id)
            )
            return "" if is_same else f"voted for {voted.id}"
        if core.leader_id != NO_NODE:
            return f"{core.leader_id} leads this epoch"
    elif isinstance(role, Follower) and hears_leader(core, role):
        return f"fetches from leader {role.leader_id}"
    if not request.last.is_at_least(core.position):
        return f"position {request.last} is behind {core.position}"
    floor = core.election.vote_floor
    if floor is not None and not request.last.is_at_least(floor):
        return f"position {request.last} is below the vote floor {floor}"
    return ""


def _record_vote(core: CoreState, candidate: ReplicaKey) -> None:
    role = core.role
    if core.election.voted is not None:
        return
    if isinstance(role, Unattached):
        state = core.election
        core.save_election(ElectionState(state.epoch, state.leader_id, candidate, state.vote_floor))
        role.election_deadline_ms = core.random_election_deadline()
    else:
        become_unattached(core, core.epoch, voted=candidate, reason=f"voted for {candidate.id}")


# Getting elected.


def on_vote_response(core: CoreState, sender: NodeId, response: VoteResponse) -> None:
    """Count an answer to our vote or pre-vote request."""
    role = core.role
    ballot = role.ballots.get(sender) if isinstance(role, Prospective | Candidate) else None
    if ballot is None or ballot.request_id != response.request_id or not response.request_id:
        ignore(core, sender, response, "never asked for, or no longer")
        return
    ballot.request_id = 0
    is_current = learn_from_response(core, sender, response)
    if core.role is not role or not isinstance(role, Prospective | Candidate):
        return
    if not is_current or response.error != ErrorCode.NONE:
        _ask_again_later(core, ballot)
        return
    ballot.granted = response.granted
    if not response.granted and role.fail_fast and role.retry_ms == NEVER_MS:
        role.retry_ms = core.now_ms + core.rng.randint(0, core.config.lost_leader_retry_ms)


def on_vote_failed(core: CoreState, peer: NodeId, request_id: int) -> None:
    """A vote request to ``peer`` will not be answered: ask again after a pause."""
    role = core.role
    if isinstance(role, Prospective | Candidate):
        ballot = role.ballots.get(peer)
        if ballot is not None and ballot.request_id == request_id:
            ballot.request_id = 0
            _ask_again_later(core, ballot)


def _ask_again_later(core: CoreState, ballot: Ballot) -> None:
    ballot.failures += 1
    ballot.due_ms = core.now_ms + backoff_ms(core.config, ballot.failures)


def pursue_unattached(core: CoreState, role: Unattached) -> None:
    """Stand when the election timer has expired."""
    if not core.may_campaign or core.now_ms < role.election_deadline_ms:
        return
    core.fired(Timer.ELECTION)
    if not stand(core, fail_fast=False, reason="the election timer expired"):
        role.election_deadline_ms = core.random_election_deadline()


def pursue_prospective(core: CoreState, role: Prospective) -> None:
    """Count pre-votes, ask for missing ones, or give up the round."""
    result = _tally(core, role)
    obstacle = why_not_stand(core)
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
    # Whatever made us think that the leader is gone, nobody else could confirm it in time.
    core.lost_leader = None
    become_follower(core, leader_id, core.epoch, core.leader_endpoints, reason=reason)
    if isinstance(core.role, Follower):
        core.role.has_campaigned = True


def pursue_candidate(core: CoreState, role: Candidate) -> None:
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
    """Where the round stands; one that is about to leave does not count its own vote."""
    answers = [ballot.granted for ballot in role.ballots.values()]
    own = int(core.is_voter)
    return majority.vote_result(
        len(answers) + own, granted=answers.count(True) + own, rejected=answers.count(False)
    )


def asks_voters(core: CoreState, role: Prospective | Candidate) -> bool:
    """Whether the round is still open, so that missing answers are asked for."""
    if _tally(core, role) is not VoteResult.LOST:
        return True
    return isinstance(role, Prospective) and role.fail_fast


def _ask(core: CoreState, ballots: dict[NodeId, Ballot], *, pre_vote: bool) -> None:
    """Send the request to every voter that is due and has not answered in this round."""
    for voter_id, ballot in ballots.items():
        if ballot.granted is not None or core.now_ms < ballot.due_ms:
            continue
        if ballot.request_id:
            core.fired(Timer.VOTE_REQUEST)
            ballot.request_id = 0
            _ask_again_later(core, ballot)
            continue
        if ballot.failures:
            core.fired(Timer.VOTE_RETRY)
        ballot.request_id = core.next_request_id()
        ballot.due_ms = core.now_ms + core.config.request_timeout_ms
        core.send(
            voter_id,
            VoteRequest(
                ballot.request_id,
                core.cluster_id,
                core.me,
                ballot.voter,
                core.epoch,
                core.position,
                pre_vote,
            ),
        )

"""Rules for requests that name a leader or candidate: who may send one, and which epochs it moves.

Anyone who can open a stream to this replica can send a request. A response comes only from a peer
that this replica asked. So Vote, BeginQuorumEpoch and EndQuorumEpoch change state only within
these rules:

1. A replica that follows a live leader takes no later epoch from a request, neither from a vote
   request nor from another leader's claim. It learns a real later epoch from its own leader, or
   after that leader has fallen silent.
2. Requests raise the epoch no faster than elections do. A replica that was away for longer learns
   the epoch from the responses to its own requests.
3. A leader must be a voter that this replica knows or voted for. An unknown candidate may have
   been added by a record that this replica lacks; the candidate's log is then ahead of its own.
4. A voter takes no epoch from a request before its bootstrap is complete. An epoch above 0
   disqualifies the disks that have not agreed yet, and this voter would pass the epoch on to them.
   An observer takes a later epoch only from a candidate that asks for its vote: a known voter, or
   one that names this very disk as a voter. Records that the observer lacks may have added both.
   An observer in an epoch without a leader would stay out of the quorum until the next election.

See: Raft dissertation sections 4.2.2 and 4.2.3; ADR 44.
"""

from __future__ import annotations

from typing import Final

from quorum.core.contract.reasons import Rejection, VoteRejection
from quorum.core.messages.vote_messages import VoteRequest
from quorum.core.state.core_state import CoreState
from quorum.core.state.roles import Follower, Leader, Prospective
from quorum.errors import ErrorCode
from quorum.types import EPOCH_MAX, NO_NODE, Epoch, NodeId, OffsetAndEpoch, ReplicaKey

RAISES_MAX: Final = 100
"""Most epochs by which requests may raise the epoch at once. The budget grows by one per election
timeout. At that pace the epochs of the default configuration last for 68 years."""
RESPONSE_RAISE_MAX: Final = 1 << 20
"""Most epochs that one response may be ahead: two years with one election a minute."""


def has_leader_contact(core: CoreState, role: Follower) -> bool:
    """Return whether the leader answered within the fetch timeout and is not known to be gone.

    The rule holds for every follower, including one that believes it is an observer. A record that
    it has not received may have made it a voter. The others then need its pre-vote to elect the
    replica with that record. See: ADR 35; Raft dissertation sections 4.1, 4.2.3 and 9.6.
    """
    is_lost = core.known_leader.lost is not None
    return role.has_fetched and not is_lost and core.now_ms < role.fetch_deadline_ms


def awaits_leader(core: CoreState) -> bool:
    """Return whether the known leader has not answered a Fetch yet, or no longer does."""
    role = core.role
    if isinstance(role, Follower):
        return not has_leader_contact(core, role)
    return isinstance(role, Prospective)


def live_leader(core: CoreState) -> NodeId:
    """Return the leader that is not suspected to be gone; ``NO_NODE`` if there is none.

    A follower's leader is live while it answered a Fetch within the fetch timeout. A leader counts
    itself as live while a majority has fetched from it within that time.
    """
    role, config = core.role, core.config
    if isinstance(role, Follower):
        return role.leader_id if has_leader_contact(core, role) else NO_NODE
    if isinstance(role, Leader) and role.established:
        silent_from_ms = (
            role.check_quorum_deadline_ms - config.check_quorum_ms + config.fetch_timeout_ms
        )
        return core.me.id if not role.remote or core.now_ms < silent_from_ms else NO_NODE
    return NO_NODE


def _why_not_raise(core: CoreState, epoch: Epoch, author: ReplicaKey) -> Rejection | None:
    """Return why a request may not raise the epoch to ``epoch``; None when it may.

    When it may, the raise is charged to the budget of ``RAISES_MAX`` that ``author`` shares: that
    of the voters known here, or that of all others. Call this at most once per request, just before
    the epoch is adopted.
    """
    if epoch <= core.epoch:
        return None
    leader_id = live_leader(core)
    if leader_id != NO_NODE:
        return VoteRejection.LEADER_CONTACT, f"leader {leader_id}"
    if core.is_bootstrapping:
        return VoteRejection.BOOTSTRAPPING, ""
    return _why_not_so_far(core, epoch, is_known=core.voters.knows(author))


def _why_not_so_far(core: CoreState, epoch: Epoch, *, is_known: bool) -> Rejection | None:
    """Charge the jump to ``epoch`` to the budget; return the reason if too little is left."""
    period_ms = core.config.election_timeout_ms
    cost_ms, budget_ms = (epoch - core.epoch) * period_ms, RAISES_MAX * period_ms
    if core.rate_limits.charge_raise(core.now_ms, cost_ms, budget_ms, is_known=is_known):
        return None
    return VoteRejection.EPOCH_TOO_FAR, f"epoch {epoch}, not {core.epoch}"


def is_out_of_reach(core: CoreState, epoch: Epoch) -> bool:
    """Return whether no correct replica can name ``epoch`` in a response.

    It is out of reach if it is negative, above ``EPOCH_MAX`` or more than ``RESPONSE_RAISE_MAX``
    ahead.
    """
    return not 0 <= epoch <= min(EPOCH_MAX, core.epoch + RESPONSE_RAISE_MAX)


def _why_no_candidate(
    core: CoreState, candidate: ReplicaKey, last: OffsetAndEpoch
) -> Rejection | None:
    """Return why ``candidate``, whose log ends with ``last``, cannot campaign; None if it can."""
    if core.voters.knows(candidate):
        return None
    if last == core.position or not last.is_at_least(core.position):
        return VoteRejection.UNKNOWN_CANDIDATE, f"{last} is not above {core.position}"
    return None


def why_not_considered(core: CoreState, request: VoteRequest) -> Rejection | None:
    """Return why a vote request changes nothing here, not even the epoch; None when it may."""
    stranger = _why_no_candidate(core, request.candidate, request.last)
    if stranger or _was_asked_to_campaign(core, request):
        return stranger
    if request.epoch > core.epoch and not core.may_campaign and not _is_called_voter(core, request):
        return VoteRejection.NOT_ASKED_AS_VOTER, ""
    return _why_not_raise(core, request.epoch, request.candidate)


def _is_called_voter(core: CoreState, request: VoteRequest) -> bool:
    """Return whether the candidate treats this replica as a voter and may know better than its log.

    A replica may be added while it also lacks the record of an earlier addition. It then knows
    neither itself nor that candidate as a voter, and the quorum may still need its vote.
    """
    if core.voters.knows(request.candidate):
        return request.voter.id >= 0
    return request.voter == core.me


def _was_asked_to_campaign(core: CoreState, request: VoteRequest) -> bool:
    """Return whether this leader asked the candidate to take over, which explains its epoch."""
    asked = core.role.asked_to_campaign if isinstance(core.role, Leader) else None
    return (
        asked is not None and asked.matches(request.candidate) and request.epoch == core.epoch + 1
    )


def refusal_of_leader_claim(core: CoreState, leader: ReplicaKey, epoch: Epoch) -> ErrorCode | None:
    """Return what is wrong with a request in the name of the leader of ``epoch``; None if nothing.

    UNKNOWN_LEADER_EPOCH: this replica does not move to that epoch because of a request.
    """
    if not may_lead(core, leader, epoch):
        return ErrorCode.INELIGIBLE_REPLICA
    # In an epoch without a leader it would stay out of the quorum until the next election.
    is_bound = epoch > core.epoch and not core.may_campaign
    return (
        ErrorCode.UNKNOWN_LEADER_EPOCH if is_bound or _why_not_raise(core, epoch, leader) else None
    )


def may_lead(core: CoreState, leader: ReplicaKey, epoch: Epoch) -> bool:
    """Return whether a request may name ``leader`` as the leader of ``epoch``.

    Epoch 0 has no leader.
    """
    if epoch == 0:
        return False
    if epoch == core.epoch:
        voted = core.election.voted
        if leader.id == core.leader_id or (voted is not None and voted.matches(leader)):
            return True
    return core.voters.knows(leader)

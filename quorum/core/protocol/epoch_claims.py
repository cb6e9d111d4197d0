"""What a request of an election may move here: whose it may be, and how far it may raise the epoch.

A request comes from whoever can open a stream to this replica; a response comes from where this
replica asked. So Vote, BeginQuorumEpoch and EndQuorumEpoch move only what another source bears out:

1. A replica that follows a live leader takes no later epoch from a request, be it a vote or the
   word of another leader. It hears of a real one from its own leader, or when that falls silent.
2. Requests raise the epoch no faster than elections do. Who was away for longer learns the epoch
   from the answers to its own questions.
3. Only a voter that this replica knows, or voted for, leads. A candidate that it does not know may
   have been added by a record that it has not; such a candidate's log is ahead of its own.
4. A voter takes no epoch from a request before its bootstrap is complete: one above 0 disqualifies
   the disks that have not agreed yet, and that it tells them of.
   An observer takes a later one only from a candidate that asks for its vote: a known voter, or
   one that names this very disk as a voter. The observer and that candidate may have been added by
   records that it lacks. In an epoch that nobody leads it would stay out until the next election.

See: Raft dissertation sections 4.2.2 and 4.2.3; ADR 44.
"""

from __future__ import annotations

from typing import Final

from quorum.core.messages.vote_messages import VoteRequest
from quorum.core.protocol.refusals import EPOCH_MAX
from quorum.core.state.core_state import CoreState
from quorum.core.state.roles import Follower, Leader
from quorum.errors import ErrorCode
from quorum.types import NO_NODE, Epoch, NodeId, OffsetAndEpoch, ReplicaKey

RAISES_MAX: Final = 100
"""Epochs by which requests may raise the epoch at once; one more per election timeout. At that
pace the epochs of the default configuration last for 68 years."""
RESPONSE_RAISE_MAX: Final = 1 << 20
"""Most epochs that one response may be ahead: an election a minute for two years."""


def has_leader_contact(core: CoreState, role: Follower) -> bool:
    """Whether the leader answered within the fetch timeout, and is not known to be gone.

    This holds for every follower, also for one that takes itself for an observer: it may have been
    made a voter by a record that it has not received yet, and then the others need its pre-vote to
    elect whoever has that record. See: ADR 35; Raft dissertation sections 4.1, 4.2.3 and 9.6.
    """
    return role.has_fetched and core.lost_leader is None and core.now_ms < role.fetch_deadline_ms


def live_leader(core: CoreState) -> NodeId:
    """The leader that this replica has no reason to take for gone; ``NO_NODE`` without one.

    A follower's answered a Fetch within the fetch timeout. A leader is its own as long as a
    majority has fetched from it within that time.
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


def _why_not_raise(core: CoreState, epoch: Epoch) -> str:
    """Why a request may not raise the epoch to ``epoch``; empty when it may, and then it counts.

    Asked at most once per request, just before the epoch is adopted.
    """
    if epoch <= core.epoch:
        return ""
    leader_id = live_leader(core)
    if leader_id != NO_NODE:
        return f"hears leader {leader_id} of epoch {core.epoch}"
    if core.is_bootstrapping:
        return "its bootstrap is not complete, and it learns of a quorum by its own questions"
    return _why_not_so_far(core, epoch)


def _why_not_so_far(core: CoreState, epoch: Epoch) -> str:
    """Spend what the jump costs, if there is as much left.

    ``CoreState.raises_until_ms`` is when elections would have got as far as requests have.
    """
    period_ms = core.config.election_timeout_ms
    spent_until_ms = max(core.raises_until_ms, core.now_ms) + (epoch - core.epoch) * period_ms
    if spent_until_ms - core.now_ms > RAISES_MAX * period_ms:
        return f"epoch {epoch} is further from {core.epoch} than elections can have come"
    core.raises_until_ms = spent_until_ms
    return ""


def is_out_of_reach(core: CoreState, epoch: Epoch) -> bool:
    """Whether no correct replica can name ``epoch`` in a response: no node number, or too far."""
    return not 0 <= epoch <= min(EPOCH_MAX, core.epoch + RESPONSE_RAISE_MAX)


def _why_no_candidate(core: CoreState, candidate: ReplicaKey, last: OffsetAndEpoch) -> str:
    """Why ``candidate``, whose log ends with ``last``, cannot be one; empty when it can."""
    if core.voters.knows(candidate):
        return ""
    if last == core.position or not last.is_at_least(core.position):
        return f"not a voter, and its position {last} is not ahead of {core.position}"
    return ""


def why_not_considered(core: CoreState, request: VoteRequest) -> str:
    """Why a vote request moves nothing here, not even the epoch; empty when it may."""
    stranger = _why_no_candidate(core, request.candidate, request.last)
    if stranger or _was_asked_to_campaign(core, request):
        return stranger
    if request.epoch > core.epoch and not core.may_campaign and not _is_called_voter(core, request):
        return "is no voter as far as it knows, and is not asked as one"
    return _why_not_raise(core, request.epoch)


def _is_called_voter(core: CoreState, request: VoteRequest) -> bool:
    """Whether the candidate asks this replica as a voter, and may know better than its own log.

    A replica may be added while it lacks the record of an earlier addition as well. It then knows
    neither itself nor that candidate as a voter, and the quorum may need its vote all the same.
    """
    if core.voters.knows(request.candidate):
        return request.voter.id >= 0
    return request.voter == core.me


def _was_asked_to_campaign(core: CoreState, request: VoteRequest) -> bool:
    """Whether this leader has asked the candidate to take over, which is why it has this epoch."""
    asked = core.role.asked_to_campaign if isinstance(core.role, Leader) else None
    return (
        asked is not None and asked.matches(request.candidate) and request.epoch == core.epoch + 1
    )


def refusal_of_leader_claim(core: CoreState, leader: ReplicaKey, epoch: Epoch) -> ErrorCode | None:
    """What is wrong with a request in the name of the leader of ``epoch``; None for nothing.

    UNKNOWN_LEADER_EPOCH: this replica does not go there at a request.
    """
    if not may_lead(core, leader, epoch):
        return ErrorCode.INELIGIBLE_REPLICA
    # In an epoch that nobody leads it would stay out of the quorum until the next election.
    is_bound = epoch > core.epoch and not core.may_campaign
    return ErrorCode.UNKNOWN_LEADER_EPOCH if is_bound or _why_not_raise(core, epoch) else None


def may_lead(core: CoreState, leader: ReplicaKey, epoch: Epoch) -> bool:
    """Whether a request may name ``leader`` as the leader of ``epoch``; nobody leads epoch 0."""
    if epoch == 0:
        return False
    if epoch == core.epoch:
        voted = core.election.voted
        if leader.id == core.leader_id or (voted is not None and voted.matches(leader)):
            return True
    return core.voters.knows(leader)

"""The legal role transitions, and the one function that makes them.

Conversations call ``become_*``. This module saves the election state, fails what waits for the old
role, and announces the change. The new role sends its messages in its own turn.

See: docs/reference/protocol.md, "Roles"; differences in DESIGN.md.
"""

from __future__ import annotations

from enum import Enum

from quorum.core.contract.events import LeaderLost, RoleChanged, TransferEnded
from quorum.core.contract.outcomes import TransferOutcome
from quorum.core.contract.output import ReadFailed, RequestSettled
from quorum.core.contract.reasons import RoleChangeCause, RoleChangeReason
from quorum.core.messages.read_messages import ReadPositionResponse
from quorum.core.protocol.leader_endpoints import learn_endpoints
from quorum.core.protocol.refusals import error_response
from quorum.core.protocol.voter_change_answers import fail_with_leadership
from quorum.core.state.core_state import CoreState
from quorum.core.state.known_leader import NamedBy
from quorum.core.state.peer_requests import PeerRequest, Purpose
from quorum.core.state.read_rounds import ReadRounds
from quorum.core.state.roles import (
    Ballot,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
    campaign_deadline,
)
from quorum.errors import ErrorCode, invariant
from quorum.types import (
    NO_NODE,
    ElectionState,
    Endpoint,
    Epoch,
    LeaderAndEpoch,
    NodeId,
    ReplicaKey,
)


class Step(Enum):
    """What a change of role does to the epoch."""

    SAME = "same epoch"
    HIGHER = "higher epoch"


TRANSITIONS: frozenset[tuple[type[Role], type[Role], Step]] = frozenset(
    {
        (Unattached, Unattached, Step.HIGHER),
        (Unattached, Prospective, Step.SAME),
        (Unattached, Follower, Step.SAME),
        (Unattached, Follower, Step.HIGHER),
        (Prospective, Candidate, Step.HIGHER),
        (Prospective, Unattached, Step.SAME),
        (Prospective, Unattached, Step.HIGHER),
        (Prospective, Follower, Step.SAME),
        (Prospective, Follower, Step.HIGHER),
        (Candidate, Leader, Step.SAME),
        (Candidate, Prospective, Step.SAME),
        (Candidate, Unattached, Step.HIGHER),
        (Candidate, Follower, Step.SAME),
        (Candidate, Follower, Step.HIGHER),
        (Leader, Resigned, Step.SAME),
        (Leader, Unattached, Step.HIGHER),
        (Leader, Follower, Step.HIGHER),
        (Resigned, Unattached, Step.HIGHER),
        (Resigned, Follower, Step.HIGHER),
        (Follower, Prospective, Step.SAME),
        (Follower, Unattached, Step.HIGHER),
        (Follower, Follower, Step.SAME),
        (Follower, Follower, Step.HIGHER),
    }
)
"""Every legal change of role. Same-epoch changes into a leaderless role only where listed."""

NO_TOKEN = 0
"""No caller waits for the outcome."""

_VOTE_QUIET_DIVISOR = 4


def become_unattached(
    core: CoreState, epoch: Epoch, *, cause: RoleChangeCause, voted: ReplicaKey | None = None
) -> None:
    """Follow no leader in ``epoch``; ``voted`` is the vote cast in it, if any.

    A running election timer is carried over, so that messages cannot keep a node from ever
    campaigning. A vote for a known voter and roles without an election timer draw a new one.
    """
    is_for_a_voter = voted is not None and core.voters.knows(voted)
    running_ms = None if is_for_a_voter else _running_election_timer(core.role)
    deadline = core.now_ms
    if not core.is_lone_voter:
        drawn_ms = core.random_election_deadline() if running_ms is None else running_ms
        deadline = max(drawn_ms, deadline)
    # The winner of this vote announces itself sooner than a search would find it.
    quiet_ms = core.config.election_timeout_ms // _VOTE_QUIET_DIVISOR
    keeps = epoch == core.epoch
    _enter(
        core,
        Unattached(deadline, discover_at_ms=core.now_ms + quiet_ms if core.is_voter else 0),
        ElectionState(
            epoch,
            core.leader_id if keeps else NO_NODE,
            voted if voted is not None else (core.election.voted if keeps else None),
            core.election.vote_floor,
        ),
        cause,
    )


def _running_election_timer(role: Role) -> int | None:
    """Return the deadline of the election timer that continues when ``role`` ends; None without."""
    was_rejected = isinstance(role, Prospective) and any(
        ballot.granted is False for ballot in role.ballots.values()
    )
    if was_rejected or isinstance(role, Leader | Follower):
        return None
    return role.election_deadline_ms


def become_follower(
    core: CoreState,
    leader_id: NodeId,
    epoch: Epoch,
    endpoints: tuple[Endpoint, ...],
    *,
    cause: RoleChangeCause,
    named_by: NamedBy = NamedBy.PEER,
    keeps_deadline: bool = False,
) -> None:
    """Fetch from ``leader_id`` in ``epoch``, with a full fetch timer.

    ``named_by``: who named ``endpoints``.
    ``keeps_deadline``: this replica campaigns no later than it would have without that leader.
    """
    timeout_ms = core.random_fetch_timeout()
    deadline_ms = core.now_ms + timeout_ms
    if keeps_deadline:
        deadline_ms = min(deadline_ms, max(core.now_ms, campaign_deadline(core.role)))
    _enter(
        core,
        Follower(leader_id, deadline_ms, timeout_ms),
        ElectionState(
            epoch,
            leader_id,
            core.election.voted if epoch == core.epoch else None,
            core.election.vote_floor,
        ),
        cause,
    )
    core.following.peers.reset()
    learn_endpoints(core, endpoints, named_by)


def become_prospective(core: CoreState, *, fail_fast: bool, cause: RoleChangeCause) -> None:
    """Ask for pre-votes. Nothing is saved: a pre-vote promises nothing."""
    _enter(
        core,
        Prospective(core.random_election_deadline(), new_ballots(core), fail_fast),
        core.election,
        cause,
    )


def become_candidate(core: CoreState, *, fail_fast: bool, cause: RoleChangeCause) -> None:
    """Raise the epoch, vote for this node, and ask for votes once that is durable."""
    _enter(
        core,
        Candidate(core.random_election_deadline(), new_ballots(core), fail_fast),
        ElectionState(core.epoch + 1, NO_NODE, core.me, core.election.vote_floor),
        cause,
    )


def new_ballots(core: CoreState) -> dict[NodeId, Ballot]:
    """Return one fresh ballot for every other voter in force; close the earlier vote requests."""
    core.requests.close_all(Purpose.VOTE)
    others = [voter.key for voter in core.voters.latest.others(core.me)]
    return {key.id: Ballot(key.id, core.now_ms, voter=key) for key in others}


def become_leader(core: CoreState, granting: tuple[NodeId, ...]) -> None:
    """Win the epoch. No peer or client sees it before it is durable (ADR 7)."""
    role = Leader(
        epoch_start=core.log.end_offset,
        granting=granting,
        since_ms=core.now_ms,
        reads=ReadRounds(core.epoch, core.now_ms),
    )
    state = core.election
    _enter(
        core,
        role,
        ElectionState(state.epoch, core.me.id, state.voted, state.vote_floor),
        RoleChangeCause(RoleChangeReason.VOTE_WON),
    )
    role.durable_with = core.disk.election_ticket


def become_resigned(
    core: CoreState, successors: tuple[ReplicaKey, ...], *, cause: RoleChangeCause
) -> None:
    """Stop leading this epoch; this node never leads it again."""
    _enter(core, resigned_role(core, successors), core.election, cause)


def resigned_role(core: CoreState, successors: tuple[ReplicaKey, ...]) -> Resigned:
    """Return a role that owes every other voter an EndQuorumEpoch and then leaves the epoch."""
    return Resigned(
        core.now_ms if core.is_lone_voter else core.random_election_deadline(),
        successors,
        {
            voter.key.id: PeerRequest(voter.key.id, Purpose.END_EPOCH, core.now_ms)
            for voter in core.voters.latest.others(core.me)
        },
    )


def _enter(core: CoreState, role: Role, state: ElectionState, cause: RoleChangeCause) -> None:
    before = core.role
    rises = state.epoch > core.epoch
    step = Step.HIGHER if rises else Step.SAME
    names = type(before).__name__, type(role).__name__
    invariant(
        state.epoch >= core.epoch and (type(before), type(role), step) in TRANSITIONS,
        f"no transition from {names[0]} to {names[1]}",
        epoch=core.epoch,
        new_epoch=state.epoch,
        reason=cause.reason,
    )
    leader_id = core.election.leader_id
    core.role = role
    core.save_election(state)
    core.requests.close_of_role()
    core.requests.end_flight()
    core.forwarded.recall()
    if rises or state.leader_id != leader_id:
        # These belong to another leader, perhaps one wrongly named for this epoch.
        core.known_leader.forget()
    core.event(RoleChanged(*names, state.epoch, state.leader_id, cause.reason, cause.peer))
    if isinstance(before, Leader):
        _settle_leadership(core, before)
    core.announce_leadership()


def _settle_leadership(core: CoreState, leader: Leader) -> None:
    """Fail what waits for a leader that no longer leads."""
    for fetch in leader.held.take_all():
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        core.send(fetch.sender, error_response(core, fetch.request, error))
    for read in leader.reads.take_all():
        if read.asker is None:
            core.progress(ReadFailed(read.token))
            continue
        core.send(
            read.asker.sender,
            ReadPositionResponse(
                read.asker.request_id,
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                core.leader_id,
                core.epoch,
                leader_endpoints=core.answering_endpoints(),
            ),
        )
    fail_with_leadership(core, leader)
    if isinstance(core.role, Resigned):
        end_transfer(core, leader, ErrorCode.NOT_LEADER_OR_FOLLOWER, TransferOutcome.RESIGNED)
    else:
        end_transfer(core, leader, ErrorCode.NONE, TransferOutcome.SUPERSEDED)


def end_transfer(
    core: CoreState, leader: Leader, error: ErrorCode, outcome: TransferOutcome, detail: str = ""
) -> None:
    """End the leadership transfer, if one is under way; the leader may take writes again."""
    transfer, leader.transfer = leader.transfer, None
    if transfer is None:
        return
    core.requests.close(transfer.request)
    core.event(TransferEnded(transfer.target, core.epoch, outcome, detail))
    if transfer.token != NO_TOKEN:
        core.progress(
            RequestSettled(
                transfer.token,
                error,
                f"transfer to {transfer.target.id}: {outcome} {detail}".rstrip(),
            )
        )


def follow_hint(
    core: CoreState,
    leader_id: NodeId,
    epoch: Epoch,
    endpoints: tuple[Endpoint, ...],
    *,
    cause: RoleChangeCause,
    named_by: NamedBy = NamedBy.PEER,
) -> bool:
    """Adopt a peer's hint about the leader; return False if it contradicts what is known.

    A newer epoch is adopted with its leader. A replica that may campaign adopts it without a
    leader as well. An observer does not: the leader of the epoch before would refuse it.
    In the same epoch a leader is adopted if none is known, or if the known one has not answered a
    Fetch, because that hint may have been wrong. Any other contradiction is the peer's mistake and
    changes nothing: two leaders of one epoch, or a leadership that this node never had.

    Hints never postpone a campaign indefinitely. A hint keeps the campaign deadline if it replaces
    another leader of the same epoch or if its author is not proven (``named_by``).
    """
    if epoch < core.epoch or epoch == 0:
        return True  # no node leads before the first election, whatever the hint says
    if leader_id == core.me.id:
        return _take_hint_of_own_leadership(core, epoch, cause)
    if epoch > core.epoch:
        if leader_id < 0:
            if core.may_campaign:
                become_unattached(core, epoch, cause=cause)
        else:
            become_follower(
                core,
                leader_id,
                epoch,
                endpoints,
                cause=cause,
                named_by=named_by,
                keeps_deadline=named_by is NamedBy.UNPROVEN,
            )
        return True
    return leader_id < 0 or _follow_in_epoch(
        core, leader_id, endpoints, cause=cause, named_by=named_by
    )


def _follow_in_epoch(
    core: CoreState,
    leader_id: NodeId,
    endpoints: tuple[Endpoint, ...],
    *,
    cause: RoleChangeCause,
    named_by: NamedBy,
) -> bool:
    """Follow ``leader_id`` in the present epoch; False if that contradicts a known leader."""
    role = core.role
    if isinstance(role, Leader | Resigned):
        return False
    is_other = core.leader_id not in (NO_NODE, leader_id)
    if isinstance(role, Follower) and not is_other:
        learn_endpoints(core, endpoints, named_by)
    elif isinstance(role, Follower) and role.has_fetched:
        return False
    elif is_other or core.leader_id == NO_NODE or isinstance(role, Unattached):
        become_follower(
            core,
            leader_id,
            core.epoch,
            endpoints,
            cause=cause,
            named_by=named_by,
            keeps_deadline=is_other or named_by is NamedBy.UNPROVEN,
        )
    return True


def _take_hint_of_own_leadership(core: CoreState, epoch: Epoch, cause: RoleChangeCause) -> bool:
    """Handle a hint that this replica leads ``epoch``; False if it contradicts what is known.

    A forged hint may have misled the peer, which may repeat it. The peer's answers must still
    count, and this replica must leave the peer's epoch behind, or it is never elected again. It
    records a vote for itself, so that it votes for no other node in that epoch: a real leader of
    the epoch has voted for itself. A fresh disk records no vote; it is disqualified.
    """
    if epoch > core.epoch:
        if not core.may_campaign:
            return False
        voted = None if core.is_bootstrapping else core.me
        become_unattached(core, epoch, voted=voted, cause=cause)
        return True
    return isinstance(core.role, Leader | Resigned | Unattached | Prospective | Candidate)


def lose_leader(core: CoreState, wait_ms: int) -> None:
    """Note that the leader of this epoch is gone, and campaign after ``wait_ms`` (ADR 8)."""
    role = core.role
    if not isinstance(role, Follower):
        return
    core.known_leader.lost = LeaderAndEpoch(role.leader_id, core.epoch)
    role.campaign_at_ms = min(role.campaign_at_ms, core.now_ms + wait_ms)
    core.event(LeaderLost(role.leader_id, core.epoch))

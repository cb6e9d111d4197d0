"""What a change of role keeps, drops, writes and reports, case by case."""

from __future__ import annotations

import pytest

from quorum.core.contract.events import RoleChanged
from quorum.core.contract.output import (
    LeadershipChanged,
    SaveElectionState,
)
from quorum.core.contract.reasons import RoleChangeCause, RoleChangeReason
from quorum.core.protocol.leader_endpoints import learn_endpoints
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
from quorum.core.state.peer_requests import InFlight, PeerRequest, Purpose
from quorum.core.state.roles import (
    Ballot,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
)
from quorum.core.state.waiting_reads import ForwardedRead
from quorum.errors import InvariantViolation
from quorum.types import (
    NO_NODE,
    ElectionState,
    Endpoint,
    LeaderAndEpoch,
    NodeId,
    OffsetAndEpoch,
    ReplicaKey,
)
from tests.support.bare_core import (
    EPOCH,
    LEADER,
    NOW_MS,
    core_of,
    follower,
    leading,
    progress,
    reported,
)
from tests.support.core_disk import key, voter

CAUSE = RoleChangeCause(RoleChangeReason.RESPONSE, 3)
FLOOR = OffsetAndEpoch(7, 2)
TIMER_MS = NOW_MS + 77
CLIENT = Endpoint("CLIENT", "leader", 9092)
OTHER_CLIENT = Endpoint("CLIENT", "elsewhere", 9092)
EVIL = Endpoint("CONTROLLER", "evil", 1)
RECORDED = voter(LEADER).endpoints


def ballots(*answers: bool | None) -> dict[NodeId, Ballot]:
    return {
        number: Ballot(number, voter=key(number), granted=each)
        for number, each in enumerate(answers, 2)
    }


def prospective(*answers: bool | None) -> Prospective:
    return Prospective(TIMER_MS, ballots(*answers), fail_fast=False)


def new_timer(core: CoreState, deadline_ms: int) -> bool:
    base_ms = core.config.election_timeout_ms
    return NOW_MS + base_ms <= deadline_ms < NOW_MS + 2 * base_ms


# Unattached.


@pytest.mark.parametrize(
    ("role", "voted", "goes_on"),
    [
        (Unattached(TIMER_MS), None, True),
        (Candidate(TIMER_MS, ballots(False, None), fail_fast=False), None, True),
        (Resigned(TIMER_MS, (), {}), None, True),
        (prospective(None, True), None, True),
        (prospective(True, False), None, False),
        (follower(), None, False),
        (leading()[1], None, False),
        (Unattached(TIMER_MS), key(3), False),
        (prospective(None, None), key(3), False),
        (follower(), key(3), False),
        (Unattached(TIMER_MS), key(9), True),
    ],
)
def test_a_running_election_timer_goes_on(
    role: Role, voted: ReplicaKey | None, goes_on: bool
) -> None:
    """Neither after a vote for a known voter nor after a rejected campaign: others go first."""
    core = core_of(role, leader_id=NO_NODE)
    become_unattached(core, EPOCH + 1, cause=CAUSE, voted=voted)
    assert isinstance(core.role, Unattached)
    deadline_ms = core.role.election_deadline_ms
    assert deadline_ms == TIMER_MS if goes_on else new_timer(core, deadline_ms)


def test_an_expired_election_timer_expires_at_once() -> None:
    core = core_of(Unattached(NOW_MS - 5))
    become_unattached(core, EPOCH + 1, cause=CAUSE)
    assert isinstance(core.role, Unattached)
    assert core.role.election_deadline_ms == NOW_MS


@pytest.mark.parametrize("role", [Unattached(TIMER_MS), follower()])
def test_a_lone_voter_waits_for_nobody(role: Role) -> None:
    core = core_of(role, voters=(1,))
    become_unattached(core, EPOCH + 1, cause=CAUSE)
    assert isinstance(core.role, Unattached)
    assert core.role.election_deadline_ms == NOW_MS


@pytest.mark.parametrize("is_voter", [True, False])
def test_a_voter_waits_for_the_winner_before_it_searches(is_voter: bool) -> None:
    voters = (1, 2, 3) if is_voter else (2, 3)
    core = core_of(follower(), voters=voters, election_timeout_ms=1_003)
    become_unattached(core, EPOCH + 1, cause=CAUSE)
    assert isinstance(core.role, Unattached)
    assert core.role.discover_at_ms == (NOW_MS + 250 if is_voter else 0)


@pytest.mark.parametrize(
    ("epoch", "voted", "expected"),
    [
        (EPOCH, None, ElectionState(EPOCH, LEADER, key(2), FLOOR)),
        (EPOCH, key(2), ElectionState(EPOCH, LEADER, key(2), FLOOR)),
        (EPOCH + 1, None, ElectionState(EPOCH + 1, NO_NODE, None, FLOOR)),
        (EPOCH + 1, key(3), ElectionState(EPOCH + 1, NO_NODE, key(3), FLOOR)),
    ],
)
def test_leader_and_vote_are_those_of_the_epoch(
    epoch: int, voted: ReplicaKey | None, expected: ElectionState
) -> None:
    core = core_of(prospective())
    core.adopt_election(ElectionState(EPOCH, LEADER, key(2), FLOOR))
    become_unattached(core, epoch, cause=CAUSE, voted=voted)
    assert core.election == expected


# Follower.


@pytest.mark.parametrize(
    ("role", "keeps", "expected_ms"),
    [
        (Unattached(TIMER_MS), False, None),
        (Unattached(TIMER_MS), True, TIMER_MS),
        (Unattached(NOW_MS - 5), True, NOW_MS),
        (Unattached(NEVER_MS), True, None),
        (follower(fetch_deadline_ms=TIMER_MS), True, TIMER_MS),
    ],
)
def test_a_follower_has_a_full_fetch_timer_or_the_rest_of_its_wait(
    role: Role, keeps: bool, expected_ms: int | None
) -> None:
    core = core_of(role, leader_id=NO_NODE)
    become_follower(core, 3, EPOCH, (), cause=CAUSE, keeps_deadline=keeps)
    now = core.role
    assert isinstance(now, Follower)
    config = core.config
    full_ms = range(config.fetch_timeout_ms, config.fetch_timeout_ms + config.fetch_jitter_ms)
    assert now.fetch_timeout_ms in full_ms
    given_ms = NOW_MS + now.fetch_timeout_ms if expected_ms is None else expected_ms
    assert now.fetch_deadline_ms == given_ms


@pytest.mark.parametrize("rises", [False, True])
def test_a_follower_keeps_the_vote_of_its_epoch_and_starts_anew_with_its_peers(rises: bool) -> None:
    core = core_of(Unattached(TIMER_MS))
    core.adopt_election(ElectionState(EPOCH, NO_NODE, key(2), FLOOR))
    core.peer_failed(3)
    become_follower(core, 3, EPOCH + rises, (CLIENT,), cause=CAUSE)
    voted = None if rises else key(2)
    assert core.election == ElectionState(EPOCH + rises, 3, voted, FLOOR)
    assert core.following.peers.failures(3) == 0
    assert core.known_leader.endpoints == (*voter(3).endpoints, CLIENT)


# Campaigns.


def test_a_new_round_asks_every_other_voter_afresh() -> None:
    core = core_of(prospective(True, False))
    core.requests.open(Ballot(2, voter=key(2)), 5)
    core.requests.open(PeerRequest(3, Purpose.BOOTSTRAP), 6)
    found = new_ballots(core)
    assert [each.purpose for each in core.requests] == [Purpose.BOOTSTRAP]
    assert [(each.peer, each.voter, each.due_ms) for each in found.values()] == [
        (2, key(2), NOW_MS),
        (3, key(3), NOW_MS),
    ]
    assert all(each.granted is None for each in found.values())


@pytest.mark.parametrize("fail_fast", [False, True])
def test_a_pre_vote_saves_nothing(fail_fast: bool) -> None:
    core = core_of(follower())
    become_prospective(core, fail_fast=fail_fast, cause=CAUSE)
    assert isinstance(core.role, Prospective)
    assert core.role.fail_fast is fail_fast
    assert list(core.role.ballots) == [2, 3]
    assert new_timer(core, core.role.election_deadline_ms)
    assert (core.epoch, core.leader_id) == (EPOCH, LEADER)
    assert not core.out.persist


@pytest.mark.parametrize("fail_fast", [False, True])
def test_a_candidate_votes_for_itself_in_the_next_epoch(fail_fast: bool) -> None:
    core = core_of(prospective())
    core.adopt_election(ElectionState(EPOCH, LEADER, key(2), FLOOR))
    become_candidate(core, fail_fast=fail_fast, cause=CAUSE)
    assert isinstance(core.role, Candidate)
    assert core.role.fail_fast is fail_fast
    assert list(core.role.ballots) == [2, 3]
    assert new_timer(core, core.role.election_deadline_ms)
    state = ElectionState(EPOCH + 1, NO_NODE, key(1), FLOOR)
    assert core.election == state
    assert core.out.persist == [SaveElectionState(state)]


def test_a_leader_waits_until_its_leadership_is_on_its_disk() -> None:
    core = core_of(Candidate(TIMER_MS, {}, fail_fast=False), log_end=12)
    core.adopt_election(ElectionState(EPOCH, NO_NODE, key(1), FLOOR))
    core.disk.last_ticket = 8
    become_leader(core, (1, 3))
    role = core.role
    assert isinstance(role, Leader)
    state = ElectionState(EPOCH, 1, key(1), FLOOR)
    assert core.out.persist == [SaveElectionState(state)]
    assert (role.durable_with, core.disk.election_ticket) == (9, 9)
    assert (role.epoch_start, role.granting, role.since_ms) == (12, (1, 3), NOW_MS)
    assert role.reads.stamp.epoch == EPOCH
    assert (role.established, core.leader_id) == (False, NO_NODE)
    announced = LeadershipChanged(NO_NODE, EPOCH, is_leader=False, can_write=False)
    assert progress(core, LeadershipChanged) == [announced]
    assert reported(core, RoleChanged) == [
        RoleChanged("Candidate", "Leader", EPOCH, 1, RoleChangeReason.VOTE_WON, NO_NODE)
    ]


# Every change.


@pytest.mark.parametrize(
    ("epoch", "leader_id", "keeps"),
    [(EPOCH, LEADER, True), (EPOCH, 3, False), (EPOCH + 1, LEADER, False)],
)
def test_what_is_known_of_the_leader_lasts_as_long_as_it_leads(
    epoch: int, leader_id: NodeId, keeps: bool
) -> None:
    core = core_of(follower())
    lost = core.known_leader.lost = LeaderAndEpoch(LEADER, EPOCH)
    learn_endpoints(core, (CLIENT,))
    become_follower(core, leader_id, epoch, (), cause=CAUSE)
    assert core.known_leader.lost == (lost if keeps else None)
    expected = (*RECORDED, CLIENT) if keeps else voter(leader_id).endpoints
    assert core.known_leader.endpoints == expected


def test_requests_of_the_former_role_are_closed() -> None:
    """A Fetch under way, too, and a question for a read position, which is asked again. A request
    of the bootstrap stays.
    """
    core = core_of(follower())
    core.requests.begin_flight(InFlight(LEADER, Purpose.FETCH, NOW_MS, 5, ticket=0))
    core.requests.open(PeerRequest(3, Purpose.VOTE), 6)
    core.requests.open(PeerRequest(3, Purpose.BOOTSTRAP), 7)
    core.forwarded.add(ForwardedRead(31, NEVER_MS))
    core.forwarded.ask(LEADER)
    become_unattached(core, EPOCH + 1, cause=CAUSE)
    assert core.requests.in_flight is None
    assert (core.forwarded.asked, len(core.forwarded)) == (0, 1)
    assert [each.purpose for each in core.requests] == [Purpose.BOOTSTRAP]
    assert reported(core, RoleChanged) == [
        RoleChanged("Follower", "Unattached", EPOCH + 1, NO_NODE, CAUSE.reason, CAUSE.peer)
    ]
    assert [each.epoch for each in progress(core, LeadershipChanged)] == [EPOCH + 1]


@pytest.mark.parametrize("epoch", [EPOCH - 1, EPOCH])
def test_no_other_change_of_role_is_made(epoch: int) -> None:
    """A follower may change its leader, but not go back; and a leader may not step down."""
    core = core_of(follower() if epoch < EPOCH else leading()[1])
    with pytest.raises(InvariantViolation, match="no transition from"):
        become_follower(core, 3, epoch, (), cause=CAUSE)
    assert core.epoch == EPOCH

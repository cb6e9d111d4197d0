"""What a replica makes of the leader that a peer names, and of its leader's end: case by case."""

from __future__ import annotations

import pytest

from quorum.core.contract.events import LeaderLost
from quorum.core.contract.reasons import RoleChangeCause, RoleChangeReason
from quorum.core.protocol.leader_endpoints import learn_endpoints
from quorum.core.protocol.role_transitions import follow_hint, lose_leader
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.known_leader import NamedBy
from quorum.core.state.roles import (
    Candidate,
    Follower,
    Prospective,
    Resigned,
    Role,
    Unattached,
    campaign_deadline,
)
from quorum.types import (
    NO_NODE,
    BootstrapState,
    ElectionState,
    Endpoint,
    LeaderAndEpoch,
    NodeId,
    ReplicaKey,
)
from tests.support.bare_core import EPOCH, LEADER, NOW_MS, core_of, follower, leading, reported
from tests.support.core_disk import key, voter

CAUSE = RoleChangeCause(RoleChangeReason.RESPONSE, 3)
CLIENT = Endpoint("CLIENT", "leader", 9092)
ELSEWHERE = Endpoint("CLIENT", "elsewhere", 9092)
TIMER_MS = NOW_MS + 77


def waiting(kind: str) -> Role:
    """A role whose wait for a leader ends soon."""
    roles: dict[str, Role] = {
        "unattached": Unattached(TIMER_MS),
        "prospective": Prospective(TIMER_MS, {}, fail_fast=False),
        "candidate": Candidate(TIMER_MS, {}, fail_fast=False),
        "resigned": Resigned(TIMER_MS, (), {}),
        "follower": follower(fetch_deadline_ms=TIMER_MS),
        "in contact": follower(fetch_deadline_ms=TIMER_MS, has_fetched=True),
        "leader": leading()[1],
    }
    return roles[kind]


def hinted(
    core: CoreState,
    leader_id: NodeId,
    epoch: int = EPOCH,
    endpoints: tuple[Endpoint, ...] = (CLIENT,),
    *,
    is_proven: bool = True,
) -> bool:
    named_by = NamedBy.LEADER if is_proven else NamedBy.UNPROVEN
    return follow_hint(core, leader_id, epoch, endpoints, cause=CAUSE, named_by=named_by)


def is_timer_kept(core: CoreState) -> bool:
    """Whether this follower campaigns when it would have before."""
    return campaign_deadline(core.role) == TIMER_MS


@pytest.mark.parametrize(
    ("present", "epoch", "leader_id"),
    [(EPOCH, EPOCH - 1, 3), (EPOCH, EPOCH - 1, NO_NODE), (0, 0, 3), (EPOCH, EPOCH - 1, 1)],
)
def test_an_earlier_epoch_and_the_one_before_any_election_say_nothing(
    present: int, epoch: int, leader_id: NodeId
) -> None:
    core = core_of(waiting("unattached"))
    core.adopt_election(ElectionState(present, NO_NODE))
    assert hinted(core, leader_id, epoch)
    assert (core.epoch, core.leader_id) == (present, NO_NODE)
    assert core.role == waiting("unattached")


@pytest.mark.parametrize("kind", ["unattached", "prospective", "candidate", "resigned", "follower"])
@pytest.mark.parametrize("is_proven", [True, False])
@pytest.mark.parametrize("leader_id", [3, 0])
def test_a_later_epoch_is_adopted_with_its_leader(
    kind: str, is_proven: bool, leader_id: NodeId
) -> None:
    core = core_of(waiting(kind), voters=(0, 1, 2, 3))
    assert hinted(core, leader_id, EPOCH + 1, is_proven=is_proven)
    assert isinstance(core.role, Follower)
    assert (core.epoch, core.leader_id) == (EPOCH + 1, leader_id)
    assert core.known_leader.endpoints == (*voter(leader_id).endpoints, *(CLIENT,) * is_proven)
    assert is_timer_kept(core) is not is_proven


@pytest.mark.parametrize("is_voter", [True, False])
def test_only_who_may_campaign_adopts_a_later_epoch_without_a_leader(is_voter: bool) -> None:
    core = core_of(follower(), voters=(1, 2, 3) if is_voter else (2, 3))
    assert hinted(core, NO_NODE, EPOCH + 1)
    assert isinstance(core.role, Unattached if is_voter else Follower)
    expected = (EPOCH + 1, NO_NODE) if is_voter else (EPOCH, LEADER)
    assert (core.epoch, core.leader_id) == expected


@pytest.mark.parametrize("kind", ["unattached", "prospective", "candidate", "resigned", "leader"])
def test_a_hint_of_this_epoch_without_a_leader_says_nothing(kind: str) -> None:
    role = waiting(kind)
    core = core_of(role)
    assert hinted(core, NO_NODE)
    assert core.role is role


@pytest.mark.parametrize(
    ("kind", "known", "leader_id", "is_consistent", "becomes_follower"),
    [
        ("unattached", NO_NODE, 3, True, True),
        ("unattached", NO_NODE, 0, True, True),
        ("unattached", 3, 3, True, True),
        ("prospective", NO_NODE, 3, True, True),
        ("prospective", 3, 3, True, False),
        ("prospective", LEADER, 3, True, True),
        ("candidate", NO_NODE, 3, True, True),
        ("resigned", 1, 3, False, False),
        ("leader", 1, 3, False, False),
        ("follower", 3, 3, True, False),
        ("follower", LEADER, 3, True, True),
        ("in contact", LEADER, 3, False, False),
        ("in contact", 3, 3, True, False),
    ],
)
@pytest.mark.parametrize("is_proven", [True, False])
def test_which_leader_of_this_epoch_is_believed(
    kind: str,
    known: NodeId,
    leader_id: NodeId,
    is_consistent: bool,
    becomes_follower: bool,
    is_proven: bool,
) -> None:
    """The first one; in its place another, as long as it has answered no Fetch. Another one, and
    one that is not proven, does not put off a campaign. One that is not proven names no listener.
    """
    role = waiting(kind)
    core = core_of(role, voters=(0, 1, 2, 3), leader_id=known)
    assert hinted(core, leader_id, is_proven=is_proven) is is_consistent
    assert (core.role is not role) is becomes_follower
    assert core.epoch == EPOCH
    if becomes_follower:
        assert isinstance(core.role, Follower)
        assert core.leader_id == core.role.leader_id == leader_id
        assert is_timer_kept(core) is (not is_proven or known == LEADER)
    learns = becomes_follower or (is_consistent and isinstance(role, Follower))
    expected = (*voter(leader_id).endpoints, *(CLIENT,) * is_proven) if learns else ()
    assert core.known_leader.endpoints == expected


@pytest.mark.parametrize("epoch", [EPOCH, EPOCH + 1])
@pytest.mark.parametrize("known", [(), (CLIENT,)])
@pytest.mark.parametrize("is_proven", [True, False])
def test_a_leader_without_a_record_may_have_to_be_found_by_an_unproven_hint(
    epoch: int, known: tuple[Endpoint, ...], is_proven: bool
) -> None:
    """But it is not looked for elsewhere while this node knows from others where it is reached."""
    core = core_of(follower(77), leader_id=77)
    learn_endpoints(core, known)
    assert hinted(core, 77, epoch, (ELSEWHERE,), is_proven=is_proven)
    is_taken = is_proven or not known or epoch > EPOCH
    assert core.known_leader.endpoints == ((ELSEWHERE,) if is_taken else known)


@pytest.mark.parametrize(
    ("kind", "is_consistent"),
    [
        ("unattached", True),
        ("prospective", True),
        ("candidate", True),
        ("resigned", True),
        ("leader", True),
        ("follower", False),
    ],
)
def test_a_hint_that_this_node_leads_its_epoch_contradicts_another_leader(
    kind: str, is_consistent: bool
) -> None:
    role = waiting(kind)
    core = core_of(role)
    assert hinted(core, 1) is is_consistent
    assert core.role is role


@pytest.mark.parametrize(
    ("voters", "present", "expected", "voted"),
    [
        ((1, 2, 3), EPOCH, True, key(1)),
        ((1, 2, 3), 0, True, None),
        ((2, 3), EPOCH, False, None),
    ],
)
def test_a_later_epoch_that_this_node_is_said_to_lead_is_left_behind(
    voters: tuple[int, ...], present: int, expected: bool, voted: ReplicaKey | None
) -> None:
    """With a vote for itself, unless the disk has not bootstrapped yet."""
    core = core_of(waiting("unattached"), voters=voters)
    core.adopt_election(ElectionState(present, bootstrap_state=BootstrapState(b"i" * 16)))
    assert hinted(core, 1, present + 1) is expected
    assert core.epoch == present + expected
    assert (core.election.voted, core.leader_id) == (voted, NO_NODE)


@pytest.mark.parametrize(
    ("before_ms", "wait_ms", "expected_ms"),
    [(NEVER_MS, 5, NOW_MS + 5), (NOW_MS + 3, 5, NOW_MS + 3), (NEVER_MS, 0, NOW_MS)],
)
def test_a_follower_whose_leader_is_gone_campaigns_soon(
    before_ms: int, wait_ms: int, expected_ms: int
) -> None:
    role = follower(campaign_at_ms=before_ms)
    core = core_of(role)
    lose_leader(core, wait_ms)
    assert role.campaign_at_ms == expected_ms
    assert core.known_leader.lost == LeaderAndEpoch(LEADER, EPOCH)
    assert reported(core, LeaderLost) == [LeaderLost(LEADER, EPOCH)]


def test_only_a_follower_loses_its_leader() -> None:
    core = core_of(waiting("prospective"))
    lose_leader(core, 5)
    assert core.known_leader.lost is None
    assert not core.out.events

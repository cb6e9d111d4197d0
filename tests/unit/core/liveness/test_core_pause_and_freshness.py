"""The rules of freshness and of a process pause, case by case."""

from __future__ import annotations

import random

import pytest

from quorum.config import QuorumConfig
from quorum.core.contract.freshness import Freshness
from quorum.core.liveness.freshness import (
    freshness,
    leader_age_ms,
    note_answered_fetch,
    note_confirmed_round,
)
from quorum.core.liveness.process_pause import excuse_others
from quorum.core.messages.read_messages import ReadRound
from quorum.core.state.core_state import CoreState
from quorum.core.state.read_rounds import ReadRounds
from quorum.core.state.replica_table import build_remote
from quorum.core.state.roles import Follower, Leader, Resigned, Role, Unattached
from quorum.core.voters.voter_set import VoterSet
from tests.support.core_disk import key, voter

NOW_MS = 10_000
KNOWN = Freshness(5_000, 7)


def core_of(role: Role, *, voters: tuple[int, ...] = (1, 2, 3), end: int = 9) -> CoreState:
    core = CoreState(
        config=QuorumConfig(),
        cluster_id="cluster",
        me=key(1),
        rng=random.Random(1),
        bootstrap=(),
    )
    core.role, core.now_ms, core.high_watermark, core.freshness = role, NOW_MS, end, KNOWN
    core.voters.add(0, VoterSet(map(voter, voters)))
    core.is_voter = 1 in voters
    if isinstance(role, Leader):
        build_remote(core, role)
    return core


def leader(*, can_write: bool = True, established: bool = True, as_of_ms: int = -1) -> Leader:
    reads = ReadRounds(1, 0)
    reads.as_of_ms = as_of_ms
    return Leader(0, (), 0, reads, can_write=can_write, established=established)


@pytest.mark.parametrize(
    ("can_write", "voters", "as_of_ms", "expected"),
    [
        (True, (1, 2, 3), 9_000, 1_000),
        (True, (1, 2, 3), 0, NOW_MS),
        (True, (1, 2, 3), 1, NOW_MS - 1),
        (True, (1, 2, 3), -1, -1),
        (False, (1, 2, 3), 9_000, -1),
        (True, (1,), -1, 0),
        (False, (1,), -1, -1),
        (True, (2,), 9_000, 1_000),
    ],
)
def test_a_leader_is_as_old_as_its_newest_confirmed_round(
    can_write: bool, voters: tuple[int, ...], as_of_ms: int, expected: int
) -> None:
    """It must have committed a record of its own epoch, or it may not know what others did."""
    role = leader(can_write=can_write, as_of_ms=as_of_ms)
    assert leader_age_ms(core_of(role, voters=voters), role) == expected


@pytest.mark.parametrize(
    ("sent_ms", "age_ms", "high_watermark", "expected"),
    [
        (9_000, 100, 9, Freshness(8_900, 9)),
        (9_000, 0, 9, Freshness(9_000, 9)),
        (9_000, -1, 9, KNOWN),
        (9_000, 100, 10, KNOWN),
        (9_000, 100, 8, Freshness(8_900, 8)),
        (5_100, 100, 9, KNOWN),
        (5_100, 99, 9, Freshness(5_001, 9)),
        (5_100, 101, 9, KNOWN),
    ],
)
def test_a_follower_is_as_old_as_an_answer_whose_committed_records_it_has(
    sent_ms: int, age_ms: int, high_watermark: int, expected: Freshness
) -> None:
    """Freshness never goes back, and an end that is known as of the same time stays."""
    core = core_of(Follower(2, 0, 0))
    note_answered_fetch(core, sent_ms, age_ms, high_watermark)
    assert core.freshness == expected


@pytest.mark.parametrize(
    ("can_write", "as_of_ms", "expected"),
    [
        (True, 5_001, Freshness(5_001, 9)),
        (True, 5_000, KNOWN),
        (True, 4_999, KNOWN),
        (False, 5_001, KNOWN),
        (False, 4_999, KNOWN),
    ],
)
def test_a_confirmed_round_makes_only_a_writing_leader_newer(
    can_write: bool, as_of_ms: int, expected: Freshness
) -> None:
    role = leader(can_write=can_write, as_of_ms=as_of_ms)
    core = core_of(role)
    note_confirmed_round(core, role)
    assert core.freshness == expected


@pytest.mark.parametrize(
    ("role", "voters", "is_now"),
    [
        (leader(), (1,), True),
        (leader(can_write=False), (1,), False),
        (Unattached(0), (1,), False),
        (leader(), (1, 2), False),
        (leader(), (2,), False),
    ],
)
def test_only_a_lone_voter_that_leads_is_always_current(
    role: Role, voters: tuple[int, ...], is_now: bool
) -> None:
    """Before it leads it may lack records that it is about to read from its disk."""
    found = freshness(core_of(role, voters=voters), NOW_MS)
    assert found == (Freshness(NOW_MS, 9) if is_now else KNOWN)


def deadline_of(role: Role) -> int:
    """When the role gives its peers up."""
    if isinstance(role, Leader):
        return role.check_quorum_deadline_ms
    return role.fetch_deadline_ms if isinstance(role, Follower) else role.election_deadline_ms  # type: ignore[union-attr]


@pytest.mark.parametrize("before_ms", [NOW_MS, NOW_MS + 499, NOW_MS + 500, NOW_MS + 501])
@pytest.mark.parametrize(
    ("kind", "is_excused"),
    [
        ("leader", True),
        ("leader before it is durable", False),
        ("follower", True),
        ("unattached", False),
        ("resigned", False),
    ],
)
def test_who_waits_for_others_gives_them_a_quarter_of_the_fetch_timeout(
    kind: str, is_excused: bool, before_ms: int
) -> None:
    roles: dict[str, Role] = {
        "leader": leader(),
        "leader before it is durable": leader(established=False),
        "follower": Follower(2, before_ms, 0),
        "unattached": Unattached(before_ms),
        "resigned": Resigned(before_ms, (), {}),
    }
    role = roles[kind]
    if isinstance(role, Leader):
        role.check_quorum_deadline_ms = before_ms
    core = core_of(role)
    excuse_others(core, 300)
    assert deadline_of(role) == (max(before_ms, NOW_MS + 500) if is_excused else before_ms)
    assert len(core.out.events) == is_excused


def test_a_node_that_is_always_late_still_acts() -> None:
    """The next grace may begin a fetch timeout after the end of the last one."""
    role = Follower(2, NOW_MS, 0)
    core = core_of(role)
    again_ms = NOW_MS + 500 + core.config.fetch_timeout_ms
    for core.now_ms, deadline_ms in (
        (NOW_MS, NOW_MS + 500),
        (again_ms - 1, NOW_MS + 500),
        (again_ms, again_ms + 500),
    ):
        excuse_others(core, 300)
        assert role.fetch_deadline_ms == deadline_ms


def test_a_round_belongs_to_its_epoch() -> None:
    assert ReadRounds(4, 0).stamp == ReadRound(4, 1)

"""The quarantine of a log, and whether found damage is acted on at once, case by case."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorum.core.contract.events import DamageSuspected, LogQuarantined
from quorum.core.contract.local_events import DamageFound
from quorum.core.contract.output import QuarantineLog, SaveElectionState, VerifyLog
from quorum.core.integrity.quarantine import on_damage_found, quarantine
from quorum.core.state.core_state import CoreState
from quorum.core.state.peer_requests import InFlight, Purpose
from quorum.core.state.roles import Resigned, Role, Unattached
from quorum.types import OffsetAndEpoch
from tests.support.bare_core import EPOCH, LOG_END, NOW_MS, core_of, follower, leading, reported
from tests.support.core_disk import key

CAUSE = "a bad batch"
END = OffsetAndEpoch(LOG_END, EPOCH)


def is_acted_on(core: CoreState) -> bool:
    on_damage_found(core, DamageFound(CAUSE))
    (found,) = reported(core, DamageSuspected)
    assert found.cause == CAUSE
    assert core.out.progress == ([VerifyLog(LOG_END, 0)] if found.is_acted_on else [])
    return found.is_acted_on


@pytest.mark.parametrize(
    ("role", "voters", "expected"),
    [
        (follower(), (1, 2, 3), True),
        (follower(), (1, 2), True),
        (follower(), (1,), False),
        (Unattached(NOW_MS), (1, 2, 3), False),
        # An observer is no part of any majority.
        (follower(), (2, 3), True),
        (follower(), (2,), True),
        (Unattached(NOW_MS), (2, 3), True),
    ],
)
def test_damage_is_acted_on_if_the_others_go_on_without_this_replica(
    role: Role, voters: tuple[int, ...], expected: bool
) -> None:
    assert is_acted_on(core_of(role, voters=voters)) == expected


@pytest.mark.parametrize(
    ("voters", "caught_up", "expected"),
    [
        # So many as make a majority alone have caught up within the check-quorum time.
        ((1, 2, 3), {2: 0, 3: 0}, True),
        ((1, 2, 3), {2: 0}, False),
        ((1, 2, 3), {2: 0, 3: -1}, False),
        ((1, 2), {2: 0}, False),
        ((1, 2, 3, 4, 5), {2: 0, 3: 5, 4: 0}, True),
        ((1, 2, 3, 4, 5), {2: 0, 3: -1, 4: 0, 5: -1}, False),
        ((1,), {}, False),
    ],
)
def test_a_leader_acts_on_damage_if_a_majority_of_others_has_caught_up(
    voters: tuple[int, ...], caught_up: dict[int, int], expected: bool
) -> None:
    core, leader = leading(voters)
    limit_ms = NOW_MS - core.config.check_quorum_ms
    for voter_id, more_ms in caught_up.items():
        leader.remote[voter_id].last_caught_up_ms = limit_ms + more_ms
    assert is_acted_on(core) == expected


@pytest.mark.parametrize("caught_up_ms", [-1, 0])
@pytest.mark.parametrize("now_ms", [0, 50])
def test_soon_after_the_clock_began_never_is_not_lately(now_ms: int, caught_up_ms: int) -> None:
    core, leader = leading()
    core.now_ms = now_ms
    for progress in leader.remote.values():
        progress.last_caught_up_ms = caught_up_ms
    assert is_acted_on(core) == (caught_up_ms == 0)


def test_a_fetch_under_way_is_not_waited_for_any_more() -> None:
    core = core_of(follower())
    core.requests.begin_flight(InFlight(2, Purpose.FETCH, request_id=7, ticket=0))
    quarantine(core, 3, CAUSE, is_history=True)
    assert core.requests.in_flight is None


def test_of_a_log_known_to_be_wrong_nothing_more_is_reported() -> None:
    core = core_of(follower())
    quarantine(core, 3, CAUSE, is_history=True)
    events, effects = [*core.out.events], [*core.out.persist]
    on_damage_found(core, DamageFound("another bad batch"))
    quarantine(core, 1, "another bad batch", is_history=False)
    assert (core.out.events, core.out.persist) == (events, effects)
    assert core.chain.quarantined_log == CAUSE
    assert core.out.progress == []


@pytest.mark.parametrize("is_history", [True, False, None])
def test_a_quarantine_stores_a_floor_unless_it_is_undecidable_who_is_wrong(
    is_history: bool | None,
) -> None:
    core = core_of(follower())
    quarantine(core, 3, CAUSE, is_history=is_history)
    floor = SaveElectionState(replace(core.election, vote_floor=END))
    kept = [] if is_history is None else [floor]
    assert core.out.persist == [*kept, QuarantineLog(3, CAUSE, is_history is True)]
    assert core.out.events == [LogQuarantined(3, END, CAUSE)]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (None, END),
        (OffsetAndEpoch(LOG_END, EPOCH - 1), END),
        (OffsetAndEpoch(LOG_END + 1, EPOCH), OffsetAndEpoch(LOG_END + 1, EPOCH)),
    ],
)
def test_an_earlier_floor_is_not_lowered(
    before: OffsetAndEpoch | None, expected: OffsetAndEpoch
) -> None:
    core = core_of(follower())
    core.adopt_election(replace(core.election, vote_floor=before))
    quarantine(core, 3, CAUSE, is_history=True)
    assert core.election.vote_floor == expected


def test_the_floor_is_the_durable_end_or_the_start_of_the_log() -> None:
    core = core_of(follower(), start=OffsetAndEpoch(20, 2))
    core.log.flushed_end = 30
    quarantine(core, 3, CAUSE, is_history=True)
    assert core.election.vote_floor == OffsetAndEpoch(30, EPOCH)
    core = core_of(follower(), start=OffsetAndEpoch(20, 2))
    core.log.flushed_end = 10
    quarantine(core, 3, CAUSE, is_history=True)
    assert core.election.vote_floor == OffsetAndEpoch(20, 2)


def test_a_leader_resigns_in_favour_of_the_longest_log() -> None:
    core, leader = leading()
    leader.remote[3].end_offset = 9
    quarantine(core, 3, CAUSE, is_history=False)
    assert isinstance(core.role, Resigned)
    assert core.role.preferred_successors == (key(3), key(2))

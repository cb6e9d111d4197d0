"""When the next tick is due of a node without a leader: searches, campaigns, resignations."""

from __future__ import annotations

from typing import Any

import pytest

from quorum.core.node.deadlines import next_deadline
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.peer_requests import PeerRequest, Purpose
from quorum.core.state.roles import Ballot, Candidate, Prospective, Resigned, Unattached
from quorum.types import NodeId
from tests.support.core_disk import key
from tests.unit.core.node.test_core_deadlines import (
    DUE_MS,
    LATER_MS,
    LEADER,
    NOW_MS,
    SERVER,
    asking,
    core_of,
    flight,
    not_ready,
)


@pytest.mark.parametrize("is_voter", [False, True])
def test_only_a_voter_has_an_election_timer(is_voter: bool) -> None:
    core = core_of(Unattached(DUE_MS), voters=(1, 2, 3) if is_voter else (2, 3))
    asking(core, flight(3, NEVER_MS))
    assert next_deadline(core) == (DUE_MS if is_voter else None)


def test_a_search_of_an_unattached_node_ends_in_time() -> None:
    core = asking(core_of(Unattached(LATER_MS)), flight(3, DUE_MS))
    not_ready(core, LEADER)
    assert next_deadline(core) == DUE_MS


@pytest.mark.parametrize(("discover_at_ms", "expected"), [(0, NOW_MS + 1), (DUE_MS, DUE_MS)])
def test_others_are_asked_who_leads_from_a_time_on(discover_at_ms: int, expected: int) -> None:
    assert next_deadline(core_of(Unattached(LATER_MS, discover_at_ms))) == expected


def test_a_peer_that_failed_is_asked_later() -> None:
    core = core_of(Unattached(LATER_MS))
    later_ms = not_ready(core, 2, times=3)
    ready_ms = not_ready(core, 3)
    assert ready_ms < later_ms
    assert next_deadline(core) == ready_ms


def test_a_node_that_knows_nobody_waits_for_nothing() -> None:
    assert next_deadline(core_of(Unattached(LATER_MS), voters=())) is None


# Campaigns.


def ballots(granted: bool | None = None, due_ms: int = DUE_MS) -> dict[NodeId, Ballot]:
    made = {each: Ballot(each, voter=key(each), granted=granted) for each in (2, 3)}
    for ballot in made.values():
        ballot.due_ms = due_ms
    return made


def prospective(election_ms: int = LATER_MS, fail_fast: bool = True, **fields: Any) -> Prospective:
    given = {"ballots": ballots(True), **fields}
    return Prospective(election_ms, fail_fast=fail_fast, **given)


def candidate(election_ms: int = LATER_MS, **fields: Any) -> Candidate:
    return Candidate(election_ms, fail_fast=False, **{"ballots": ballots(True), **fields})


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        (prospective(DUE_MS), DUE_MS),
        (candidate(DUE_MS), DUE_MS),
        (prospective(retry_ms=DUE_MS), DUE_MS),
        (candidate(retry_ms=DUE_MS), DUE_MS),
        (prospective(yield_until_ms=DUE_MS), DUE_MS),
        (prospective(yield_until_ms=NOW_MS), LATER_MS),
        (prospective(yield_until_ms=NOW_MS - 1), LATER_MS),
        (prospective(yield_until_ms=NOW_MS + 1), NOW_MS + 1),
        (prospective(ballots=ballots(None)), DUE_MS),
        (candidate(ballots=ballots(None)), DUE_MS),
        (prospective(ballots=ballots(True)), LATER_MS),
        (candidate(ballots=ballots(True)), LATER_MS),
        (candidate(ballots=ballots(False)), LATER_MS),
    ],
)
def test_a_campaign_has_these_deadlines(role: Prospective | Candidate, expected: int) -> None:
    assert next_deadline(core_of(role)) == expected


def lost(kind: str) -> Prospective | Candidate:
    """Two of four others rejected; the other two have not answered: no majority can come of it."""
    made = {each: Ballot(each, voter=key(each), granted=False) for each in (2, 3, 4)}
    made[5] = Ballot(5, voter=key(5))
    made[5].due_ms = DUE_MS
    if kind == "candidate":
        return Candidate(LATER_MS, made, fail_fast=True)
    return Prospective(LATER_MS, made, fail_fast=kind == "fail-fast")


@pytest.mark.parametrize(
    ("kind", "expected"), [("candidate", LATER_MS), ("fail-fast", DUE_MS), ("patient", LATER_MS)]
)
def test_a_lost_round_asks_nobody_again_unless_the_leader_is_gone(kind: str, expected: int) -> None:
    assert next_deadline(core_of(lost(kind), voters=(1, 2, 3, 4, 5))) == expected


@pytest.mark.parametrize(("fail_fast", "expected"), [(True, LATER_MS), (False, DUE_MS)])
def test_a_patient_campaign_also_asks_bootstrap_servers(fail_fast: bool, expected: int) -> None:
    core = core_of(prospective(fail_fast=fail_fast), bootstrap=(SERVER,))
    asking(core, flight(SERVER, DUE_MS))
    assert next_deadline(core) == expected


@pytest.mark.parametrize(("fail_fast", "is_asked"), [(True, False), (False, True)])
def test_a_bootstrap_server_is_asked_when_it_is_ready(fail_fast: bool, is_asked: bool) -> None:
    core = core_of(prospective(fail_fast=fail_fast), bootstrap=(SERVER,))
    ready_ms = not_ready(core, SERVER)
    assert next_deadline(core) == (ready_ms if is_asked else LATER_MS)


def test_a_candidate_asks_no_bootstrap_server() -> None:
    core = asking(core_of(candidate(), bootstrap=(SERVER,)), flight(SERVER, DUE_MS))
    assert next_deadline(core) == LATER_MS


# A leader that resigned.


@pytest.mark.parametrize(
    ("is_shutting_down", "due_ms", "expected"),
    [(False, LATER_MS, DUE_MS), (True, LATER_MS, LATER_MS), (False, NOW_MS + 5, NOW_MS + 5)],
)
def test_a_resigned_leader_sends_until_its_timer_expires(
    is_shutting_down: bool, due_ms: int, expected: int
) -> None:
    """One that stops has no election timer: it does not campaign again."""
    end = PeerRequest(2, Purpose.END_EPOCH, due_ms)
    core = core_of(Resigned(DUE_MS, (), {2: end}))
    core.process.is_shutting_down = is_shutting_down
    assert next_deadline(core) == expected

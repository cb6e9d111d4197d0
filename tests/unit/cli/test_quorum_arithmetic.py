"""Majorities, what may fail next, and what speaks against a change."""

from __future__ import annotations

import itertools

import pytest

from quorate.quorum_arithmetic import (
    PATIENCE_MS,
    Condition,
    QuorumStatus,
    Replica,
    objections_to_adding,
    objections_to_removing,
    objections_to_stopping,
    warnings_about,
)


def leader(node_id: int) -> Replica:
    return Replica(node_id, is_leader=True)


def level(node_id: int) -> Replica:
    return Replica(node_id, lag=3, silent_ms=20, behind_ms=20)


def silent(node_id: int) -> Replica:
    return Replica(node_id, lag=0, silent_ms=PATIENCE_MS + 1, behind_ms=PATIENCE_MS + 1)


def lagging(node_id: int) -> Replica:
    return Replica(node_id, lag=500, silent_ms=5, behind_ms=PATIENCE_MS + 1)


def silent_replicas(node_id: int) -> Replica:
    return Replica(node_id)


def status(*voters: Replica) -> QuorumStatus:
    return QuorumStatus(voters)


@pytest.mark.parametrize(
    ("replica", "condition"),
    [
        (leader(1), Condition.LEADER),
        (level(2), Condition.LEVEL),
        (silent(2), Condition.SILENT),
        (lagging(2), Condition.LAGGING),
        (silent_replicas(2), Condition.UNKNOWN),
        (Replica(2, lag=0, silent_ms=10, behind_ms=-1), Condition.LEVEL),
        (Replica(2, lag=1, silent_ms=10, behind_ms=-1), Condition.LAGGING),
        (Replica(2, lag=-1, silent_ms=10, behind_ms=10), Condition.UNKNOWN),
        (Replica(2, lag=9, silent_ms=PATIENCE_MS, behind_ms=PATIENCE_MS), Condition.LEVEL),
    ],
)
def test_conditions(replica: Replica, condition: Condition) -> None:
    assert replica.condition is condition


@pytest.mark.parametrize(
    ("count", "majority", "tolerated"),
    [(1, 1, 0), (2, 2, 0), (3, 2, 1), (4, 3, 1), (5, 3, 2), (6, 4, 2), (7, 4, 3)],
)
def test_majorities(count: int, majority: int, tolerated: int) -> None:
    found = status(leader(1), *(level(each) for each in range(2, count + 1)))
    assert (found.majority, found.tolerated, found.margin) == (majority, tolerated, tolerated)


def test_margin_and_next_failure_agree_with_counting() -> None:
    """Every mixture of up to six voters: a trial failure shows which voter may fail next."""
    kinds = (level, silent, lagging, silent_replicas)
    for count in range(1, 6):
        for mixture in itertools.product(kinds, repeat=count - 1):
            voters = [leader(1), *(kind(place + 2) for place, kind in enumerate(mixture))]
            now = status(*voters)
            able = {each.id for each in voters if each.is_able}
            expected = [
                each.id
                for each in voters
                if len(able) >= now.majority and len(able - {each.id}) >= now.majority
            ]
            assert list(now.may_fail_next) == expected
            for each in voters:
                may = not objections_to_stopping(now, each.id)
                assert may is (len(able - {each.id}) >= now.majority)


def test_stopping_one_of_three_and_what_is_to_spare() -> None:
    well = status(leader(1), level(2), level(3))
    assert objections_to_stopping(well, 2) == []
    assert objections_to_stopping(well, 2, spare=1)
    assert objections_to_stopping(well, 9) == []
    wounded = status(leader(1), level(2), silent(3))
    assert objections_to_stopping(wounded, 2) == [
        "1 of 3 voters would be left that can acknowledge, 2 are needed",
        "node 3 is silent for 3.0 s",
    ]
    assert objections_to_stopping(wounded, 3) == []


def test_adding_to_a_wounded_set() -> None:
    """Three with one down, and a fourth: three of four would be needed, and three there are."""
    wounded = status(leader(1), level(2), silent(3))
    assert objections_to_adding(wounded, level(4)) == []
    (why,) = objections_to_adding(status(leader(1), silent(2), silent(3)), level(4))
    assert "2 of 4 voters could acknowledge, 3 would be needed" in why


@pytest.mark.parametrize(
    ("voter", "words"),
    [
        (level(2), "voter already"),
        (silent_replicas(4), "does not fetch"),
        (lagging(4), "500 records behind"),
        (silent(4), "silent for"),
    ],
)
def test_who_is_not_added(voter: Replica, words: str) -> None:
    found = objections_to_adding(status(leader(1), level(2), level(3)), voter)
    assert any(words in each for each in found)


@pytest.mark.parametrize("voter", [silent_replicas(2), level(2)])
def test_a_present_voter_gets_no_further_remarks(voter: Replica) -> None:
    """A voter is not among the observers, so its candidate looks like one that never fetched."""
    wounded = status(leader(1), level(2), silent(3))
    assert objections_to_adding(wounded, voter) == ["node 2 is a voter already"]


def test_removing() -> None:
    well = status(leader(1), level(2), level(3))
    assert objections_to_removing(well, 1) == []
    assert objections_to_removing(well, 3) == []
    assert objections_to_removing(well, 7) == ["node 7 is not a voter"]
    assert objections_to_removing(status(leader(1)), 1) == ["node 1 is the last voter"]
    wounded = status(leader(1), level(2), silent(3))
    assert objections_to_removing(wounded, 3) == []
    (why,) = objections_to_removing(wounded, 2)
    assert "1 of 2 voters could acknowledge, 2 would be needed" in why


def test_warnings() -> None:
    assert warnings_about(status(leader(1), level(2), level(3))) == []
    (even,) = warnings_about(status(leader(1), level(2), level(3), level(4)))
    assert even == "4 voters bear no more failures than 3"
    (wounded,) = warnings_about(status(leader(1), level(2), silent(3)))
    assert wounded.startswith("0 of 1 tolerated failures are left: node 3 is silent")


def test_sets_stay_in_order_and_do_not_grow_twice() -> None:
    three = status(level(1), leader(2), level(5))
    assert [each.id for each in three.with_voter(level(3)).voters] == [1, 2, 3, 5]
    assert three.with_voter(silent(5)) == three
    assert [each.id for each in three.without(2).voters] == [1, 5]


@pytest.mark.parametrize(("patience_ms", "is_able"), [(1_000, False), (30_000, True)])
def test_the_leaders_own_patience_counts(patience_ms: int, is_able: bool) -> None:
    """A cluster of slow links bears more, one of quick ones less."""
    for replica in (
        Replica(2, lag=0, silent_ms=5_000, behind_ms=5_000, patience_ms=patience_ms),
        Replica(2, lag=7, silent_ms=10, behind_ms=5_000, patience_ms=patience_ms),
    ):
        assert replica.is_able is is_able

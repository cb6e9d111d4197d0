"""However many places one caller wants, another one that has none finds one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.fair_share import FairShare


def taken(places: FairShare, caller: str) -> int:
    """How many places a caller gets that takes all it can."""
    count = 0
    while places.take(caller):
        count += 1
    return count


def test_a_lone_caller_gets_half_and_others_share_the_rest() -> None:
    places = FairShare("calls", 1024)
    assert taken(places, "a") == 513
    assert 200 < taken(places, "b") < 300
    assert places.take("c")
    assert places.refused == 2


@pytest.mark.parametrize("greedy", [1, 2, 5, 9])
def test_greedy_callers_leave_places_for_a_newcomer(greedy: int) -> None:
    places = FairShare("calls", 1024)
    for number in range(greedy):
        taken(places, f"greedy-{number}")
    assert places.take("newcomer")


def test_a_single_place_can_be_taken() -> None:
    places = FairShare("calls", 1)
    assert taken(places, "a") == 1
    assert not places.take("b")
    places.release("a")
    assert places.take("b")


def test_a_caller_may_be_bounded_further() -> None:
    assert taken(FairShare("streams", 1024, caller_most=3), "a") == 3


@given(st.integers(1, 50), st.lists(st.tuples(st.booleans(), st.sampled_from("abcd"))))
def test_counts_are_those_of_a_plain_model(most: int, steps: list[tuple[bool, str]]) -> None:
    places, model = FairShare("things", most), dict.fromkeys("abcd", 0)
    for is_take, caller in steps:
        if is_take:
            model[caller] += places.take(caller)
        elif model[caller]:
            places.release(caller)
            model[caller] -= 1
        assert {each: places.held_by(each) for each in model} == model
        assert places.open_count == sum(model.values()) <= most

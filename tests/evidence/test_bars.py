"""Every bar of the evidence has invented results that miss it, and the checks refuse them."""

from __future__ import annotations

import pytest

from tests.evidence.bar_cases import ALL
from tests.evidence.bars import Bars, mutated
from tests.evidence.lanes import LANES


def passes_below(bound: int, value: int, is_there: bool) -> bool:
    """A check on which the method itself is tested."""
    if not is_there:
        return False
    return value < bound and value >= 0


@pytest.mark.parametrize("lane", [lane.name for lane in LANES])
def test_every_lane_has_bars(lane: str) -> None:
    """A new lane needs an entry in bar_cases.py: what decides about it, and what must fail it."""
    applying = [bars for bars in ALL if bars.applies_to(lane)]
    assert len(applying) == 1
    assert applying[0].evaluates
    assert applying[0].kept
    assert applying[0].missed


@pytest.mark.parametrize("bars", ALL, ids=lambda each: each.lanes[0])
def test_results_beyond_a_bar_fail_and_those_at_it_pass(bars: Bars) -> None:
    assert bars.wrong() == []


@pytest.mark.parametrize("bars", ALL, ids=lambda each: each.lanes[0])
def test_every_condition_of_a_check_is_needed_by_a_case(bars: Bars) -> None:
    """Method: remove each condition, shift each bound by one; a case must come out wrong."""
    assert bars.unproven() == []


@pytest.mark.parametrize(
    ("left_out", "unproven"),
    [("", 0), ("absent", 1), ("below 0", 1), ("at the bound", 1), ("beyond", 0)],
)
def test_a_bar_without_a_case_is_named(left_out: str, unproven: int) -> None:
    """Method: leave out the cases of a check, one at a time."""
    kept = {"0": lambda: passes_below(5, 0, True), "4": lambda: passes_below(5, 4, True)}
    missed = {
        "absent": lambda: passes_below(5, 1, False),
        "below 0": lambda: passes_below(5, -1, True),
        "at the bound": lambda: passes_below(5, 5, True),
        "beyond": lambda: passes_below(5, 6, True),
    }
    missed.pop(left_out, None)
    bars = Bars(("made-up",), (passes_below,), kept, missed)
    assert bars.wrong() == []
    assert len(bars.unproven()) == unproven, bars.unproven()


def test_checks_are_as_before_afterwards() -> None:
    code = passes_below.__code__
    changes = [change for change, _ in mutated(passes_below)]
    assert len(changes) == 5, changes
    assert passes_below.__code__ is code

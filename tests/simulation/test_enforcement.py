"""Minima grow with seeds and with events, and do not apply where they prove nothing."""

from __future__ import annotations

import pytest

from simulation.counts import Counts
from simulation.enforcement import (
    MINIMA_FROM_EVENTS,
    MINIMA_FROM_SEEDS,
    enforced,
    why_not_enforced,
)
from simulation.lanes import LaneReport
from simulation.minima import MINIMA
from simulation.options import FAULT_PHASE_EVENTS, Options

CRASH = MINIMA["crash"]


@pytest.mark.parametrize(
    ("seeds", "events", "times"),
    [
        (100, FAULT_PHASE_EVENTS, 1.0),
        (300, FAULT_PHASE_EVENTS, 3.0),
        (100, FAULT_PHASE_EVENTS // 2, 0.5),
        (50, 2 * FAULT_PHASE_EVENTS, 1.0),
        (1_000, 3 * FAULT_PHASE_EVENTS, 30.0),
    ],
)
def test_minima_are_scaled_by_seeds_and_by_events(seeds: int, events: int, times: float) -> None:
    least = enforced(Options("crash", events=events), seeds)
    assert least.pop("events") == seeds * events
    assert least == {name: int(count * times) for name, count in CRASH.items()}


@pytest.mark.parametrize(
    ("options", "seeds"),
    [
        (Options(), MINIMA_FROM_SEEDS - 1),
        (Options(events=MINIMA_FROM_EVENTS - 1), 1_000),
        (Options(voters=(3,)), 1_000),
        (Options(observers=(0,)), 1_000),
    ],
)
def test_without_minima_only_the_length_of_fault_phases_is_checked(
    options: Options, seeds: int
) -> None:
    assert why_not_enforced(options, seeds)
    assert enforced(options, seeds) == {"events": options.events * seeds}


def test_from_the_bounds_on_they_are_enforced() -> None:
    options = Options(events=MINIMA_FROM_EVENTS)
    assert why_not_enforced(options, MINIMA_FROM_SEEDS) == ""
    assert len(enforced(options, MINIMA_FROM_SEEDS)) > 50


def test_a_lane_falls_short_of_what_is_enforced() -> None:
    """Goal: one crash too few is seen. Method: counts at the minima, and one below."""
    options = Options("crash", events=FAULT_PHASE_EVENTS)
    least = enforced(options, 100)
    counts = Counts(
        **{name: count for name, count in least.items() if hasattr(Counts(), name)},
        acts={name: count for name, count in least.items() if not hasattr(Counts(), name)},
    )
    report = LaneReport(options, seeds=100, counts=counts)
    assert report.shortfalls() == []
    counts.acts["crash-all"] -= 1
    assert report.shortfalls() == ["crash-all: 33 in 100 seeds, at least 34 are needed"]

"""The exceptions of the invariant that a leader without contact resigns."""

from __future__ import annotations

import pytest

from simulation.invariants.violation import Violation
from tests.simulation.cases_of_leaders import LONG_MS, leads_silent
from tests.support.stub_cluster import Stage


def test_a_leader_whose_clock_jumps_does_not_violate_leader_contact() -> None:
    """Goal: only a true silence counts. Method: long ones by its own clock, with and without."""
    truly, never = Stage(), Stage()
    truly.run_observer.true_ms = lambda: truly.now_ms
    with pytest.raises(Violation, match="leader-contact"):
        leads_silent(truly)
    never.run_observer.true_ms = lambda: 0
    begun_ms = never.now_ms
    leads_silent(never)
    assert never.now_ms == begun_ms + 4 * LONG_MS, "it was looked at to the end"

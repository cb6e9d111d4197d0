"""What the invariant of the unheard leader excuses."""

from __future__ import annotations

from tests.simulation.cases_of_offices import leads_unheard
from tests.support.cardboard_cluster import Stage


def test_a_leader_whose_clock_jumps_is_not_called_unheard() -> None:
    """Goal: only a true silence counts. Method: four long ones by its own clock, none truly."""
    stage = Stage()
    stage.witness.true_ms = lambda: 0
    leads_unheard(stage)

"""Leaders that fall silent (``simulation.silent_death``), held to the bars of that measurement."""

from __future__ import annotations

from simulation.invariants.violation import Violation
from simulation.silent_death import SITUATIONS, measured, problems
from tests.simulation.experiments.experiment import Experiment

NAME = "silent-death"
_BY_NAME = {each.name: each for each in SITUATIONS}


def _experiment(situation: str, deaths: int) -> Experiment:
    def run(seed: int) -> Violation | None:
        try:
            found = problems([measured(_BY_NAME[situation], deaths, (seed - 1) * deaths + 1)])
        except Violation as violation:
            return violation
        return Violation(NAME, "; ".join(found)) if found else None

    return Experiment(f"silent death: {situation}", run)


FAR_APART = _experiment("idle, 20 ms apart", 20)
DISTANT_OBSERVERS = _experiment("distant observers", 1)

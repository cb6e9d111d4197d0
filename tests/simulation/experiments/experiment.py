"""What draws a seed and is no episode: a run of its own, with a property that it may violate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from simulation.invariants.violation import Violation


@dataclass(frozen=True, slots=True)
class Experiment:
    """One kind of run, for bugs that random faults cannot show.

    ``run`` takes a seed, which decides everything, and returns what was violated.
    """

    name: str
    run: Callable[[int], Violation | None]

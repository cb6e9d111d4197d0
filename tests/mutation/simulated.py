"""Seeds of the simulator as checks of a mutant; the gate runs the same seeds.

The gate's lanes run a seed with the same function. A violation, a missed liveness bound and an
exception are failures; missed minimum counts are not.
"""

from __future__ import annotations

from dataclasses import dataclass

from simulation.lanes import run_seed
from simulation.options import Options
from simulation.profiles import PROFILES

NUMBERS = range(1, 7)


@dataclass(frozen=True, slots=True)
class Seed:
    """One run of the simulator."""

    profile: str
    number: int

    @property
    def name(self) -> str:
        """Return its name, used like a test's."""
        return f"simulator: {self.profile} {self.number}"

    def fails(self) -> bool:
        """Run it; return whether anything was violated."""
        return bool(run_seed(self.number, Options(self.profile)).failure)


def seeds() -> dict[str, Seed]:
    """Return every seed by name: the first of each profile, then the second, and so on."""
    made = (Seed(profile, number) for number in NUMBERS for profile in sorted(PROFILES))
    return {each.name: each for each in made}

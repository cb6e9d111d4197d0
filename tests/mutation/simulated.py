"""Seeds of the simulator as checks of a mutant: some of those that the gate runs as well.

A seed is run by the function that the gate's lanes use. A violation, a missed bound of liveness and
an exception are failures; that something happened less often than usual is none.
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
        """Return its name, in the place of a test's."""
        return f"simulator: {self.profile} {self.number}"

    def fails(self) -> bool:
        """Run it; whether anything was violated."""
        return bool(run_seed(self.number, Options(self.profile)).failure)


def seeds() -> dict[str, Seed]:
    """Return every seed by name: the first of each profile, then the second, and so on."""
    made = (Seed(profile, number) for number in NUMBERS for profile in sorted(PROFILES))
    return {each.name: each for each in made}

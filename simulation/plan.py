"""The fault plan of a run, drawn from its seed and its profile."""

from __future__ import annotations

import random
from dataclasses import dataclass

from simulation.profiles import Profile


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """Chances and sizes of all faults. Times in microseconds."""

    loss: float
    duplication: float
    delay_min_us: int
    delay_max_us: int
    straggle: float
    """Chance that a message takes up to fifty times as long, so that later ones overtake it."""
    disk_min_us: int
    disk_max_us: int
    disk_stall: float
    """Chance that a disk pass takes up to a hundred times as long."""
    fault_every_us: int
    """Mean time between two acts of the fault maker."""
    drift_per_mille: int
    """Clocks run faster or slower by at most this, in parts per thousand."""
    garbage: float = 0.0
    """Chance that a message is followed by a copy that must be refused or ignored."""
    disk_groups: int = 0
    """Most groups that one disk pass completes; 0 for all that wait."""
    gather_us: int = 0
    """How long a replica that does not lead gathers committed records before it applies them."""

    @staticmethod
    def draw(rng: random.Random, profile: Profile) -> FaultPlan:
        """Draw a plan between the mildest and the worst values of the profile."""
        delay = rng.choice((200, 1_000, 4_000))
        disk = rng.choice((100, 500, 3_000))
        return FaultPlan(
            loss=rng.choice(profile.loss),
            duplication=rng.choice(profile.duplication),
            delay_min_us=delay // 4,
            delay_max_us=delay,
            straggle=rng.choice(profile.straggle),
            disk_min_us=disk // 4,
            disk_max_us=disk,
            disk_stall=rng.choice(profile.disk_stall),
            fault_every_us=rng.choice(profile.fault_every_us),
            drift_per_mille=rng.choice(profile.drift_per_mille),
            # Drawn only where the profile has any, so that the seeds of other profiles do not
            # change.
            garbage=rng.choice(profile.garbage) if any(profile.garbage) else 0.0,
            disk_groups=rng.choice(profile.disk_groups) if any(profile.disk_groups) else 0,
            gather_us=rng.choice(profile.gather_us) if any(profile.gather_us) else 0,
        )

"""What a run is asked for. Together with a seed it decides everything that happens."""

from __future__ import annotations

from dataclasses import dataclass

from simulation.profiles import PROFILES, Profile

FAULT_PHASE_EVENTS = 2_000
VOTERS_MAX = 9
OBSERVERS_MAX = 20


@dataclass(frozen=True, slots=True)
class Options:
    """Shape, weather and length of a run; the same for all seeds of a lane."""

    profile: str = "default"
    voters: tuple[int, ...] = ()
    """How many voters there may be, the seed chooses; empty: 1 to 5, mostly 3 and 5."""
    observers: tuple[int, ...] = ()
    """As above; empty: 0 to 3, mostly none."""
    events: int = FAULT_PHASE_EVENTS
    """How long the storm lasts."""

    @property
    def faults(self) -> Profile:
        """The profile itself."""
        return PROFILES[self.profile]

    def arguments(self) -> str:
        """The words of the command line that mean these options, with a space before each."""
        words = ""
        if self.profile != "default":
            words += f" --faults {self.profile}"
        for name, counts in (("voters", self.voters), ("observers", self.observers)):
            if counts:
                words += f" --{name} {','.join(map(str, counts))}"
        if self.events != FAULT_PHASE_EVENTS:
            words += f" --events {self.events}"
        return words

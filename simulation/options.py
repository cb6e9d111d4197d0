"""Options of a run. Together with a seed they decide everything that happens."""

from __future__ import annotations

from dataclasses import dataclass

from simulation.profiles import PROFILES, Profile

FAULT_PHASE_EVENTS = 2_000
VOTERS_MAX = 9
OBSERVERS_MAX = 20


@dataclass(frozen=True, slots=True)
class Options:
    """Shape, faults and length of a run; the same for all seeds of a lane."""

    profile: str = "default"
    voters: tuple[int, ...] = ()
    """Allowed numbers of voters; the seed chooses. Empty: 1 to 5, mostly 3 and 5."""
    observers: tuple[int, ...] = ()
    """Allowed numbers of observers. Empty: 0 to 3, mostly none."""
    events: int = FAULT_PHASE_EVENTS
    """Length of the fault phase, in events."""

    @property
    def faults(self) -> Profile:
        """Return the profile itself."""
        return PROFILES[self.profile]

    def arguments(self) -> str:
        """Return the command-line words for these options, each preceded by a space."""
        words = ""
        if self.profile != "default":
            words += f" --faults {self.profile}"
        for name, counts in (("voters", self.voters), ("observers", self.observers)):
            if counts:
                words += f" --{name} {','.join(map(str, counts))}"
        if self.events != FAULT_PHASE_EVENTS:
            words += f" --events {self.events}"
        return words

"""How many faults there were, and how many of them had an effect."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

PROOFS_MIN = 3
"""Number of faults of one kind without any effect that cannot be chance."""


@dataclass(slots=True)
class Tally:
    """Counts of one run, by kind of fault."""

    counts: Counter[str] = field(default_factory=Counter)
    effects: Counter[str] = field(default_factory=Counter)
    """Of ``counts`` those of which an effect was seen."""
    isolated_leaders: int = 0
    """Leaders that were cut off from all others for long enough to be replaced."""
    deposed_leaders: int = 0
    """Those of them that another had replaced before the cut ended."""

    def add(self, kind: str, *, has_effect: bool) -> None:
        """Count one fault."""
        self.counts[kind] += 1
        self.effects[kind] += has_effect

    def without_effect(self) -> list[str]:
        """Return one sentence for each kind of fault that only seemed to happen."""
        found = [
            f"{kind}: none of {count} had an effect"
            for kind, count in self.counts.items()
            if count >= PROOFS_MIN and not self.effects[kind]
        ]
        if self.isolated_leaders >= PROOFS_MIN and not self.deposed_leaders:
            found.append(f"none of {self.isolated_leaders} isolated leaders was replaced")
        return found

    def document(self) -> dict[str, object]:
        """For programs. Only faults with an effect count as faults."""
        return {
            "faults": self.effects.total(),
            "faults_by_kind": {kind: count for kind, count in self.effects.items() if count},
            "faults_without_effect": self.counts.total() - self.effects.total(),
            "isolated_leaders": self.isolated_leaders,
            "deposed_leaders": self.deposed_leaders,
        }

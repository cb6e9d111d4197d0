"""Counts the faults of a run, and those that had an effect."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

PROOFS_MIN = 3
"""If so many faults of one kind all have no effect, it cannot be chance."""
MISS_SECONDS_MAX = 3.0
"""Seconds. A longer fault has an effect, unless another fault keeps the nodes from working."""


@dataclass(slots=True)
class Tally:
    """Counts of one run, by kind of fault."""

    counts: Counter[str] = field(default_factory=Counter)
    effects: Counter[str] = field(default_factory=Counter)
    """The faults of ``counts`` that had an effect."""
    missed_beside_others: int = 0
    """Faults without an effect that overlapped with a fault of the other lane: a process that is
    down sends nothing, and one that is cut off writes nothing."""
    longest_miss_seconds: float = 0.0
    """Duration of the longest other fault without an effect."""
    isolated_leaders: int = 0
    """Leaders that were cut off from all others for long enough to be replaced."""
    deposed_leaders: int = 0
    """Those of them that another had replaced before the cut ended."""
    disturbed_isolations: int = 0
    """The ``isolated_leaders`` that were not replaced because a fault of the other lane, or a node
    that was just starting, left the other nodes without a majority or without their time."""

    def add(
        self, kind: str, *, has_effect: bool, seconds: float = 0.0, is_beside_another: bool = False
    ) -> None:
        """Count one fault, and if it had no effect, why."""
        self.counts[kind] += 1
        self.effects[kind] += has_effect
        if has_effect:
            return
        if is_beside_another:
            self.missed_beside_others += 1
        else:
            self.longest_miss_seconds = max(self.longest_miss_seconds, seconds)

    def add_isolated_leader(self, *, is_deposed: bool, is_disturbed: bool) -> None:
        """Count one leader that was cut off for long enough."""
        self.isolated_leaders += 1
        self.deposed_leaders += is_deposed
        self.disturbed_isolations += is_disturbed and not is_deposed

    def without_effect(self) -> list[str]:
        """Return one sentence for each kind of fault that had no effect and must have one."""
        found = [
            f"{kind}: none of {count} had an effect"
            for kind, count in self.counts.items()
            if count >= PROOFS_MIN and not self.effects[kind]
        ]
        undisturbed = self.isolated_leaders - self.disturbed_isolations
        if (stayed := undisturbed - self.deposed_leaders) > 0:
            found.append(f"{stayed} of {undisturbed} isolated leaders were not replaced")
        if self.longest_miss_seconds > MISS_SECONDS_MAX:
            found.append(
                f"a fault of {self.longest_miss_seconds:.1f} s had no effect, and no other fault "
                "explains it"
            )
        return found

    def document(self) -> dict[str, object]:
        """Return the counts as a document. Only faults with an effect count as faults."""
        return {
            "faults": self.effects.total(),
            "faults_by_kind": {kind: count for kind, count in self.effects.items() if count},
            "faults_without_effect": self.counts.total() - self.effects.total(),
            "without_effect_beside_another_fault": self.missed_beside_others,
            "longest_other_without_effect_s": round(self.longest_miss_seconds, 1),
            "isolated_leaders": self.isolated_leaders,
            "deposed_leaders": self.deposed_leaders,
            "not_deposed_beside_another_fault": self.disturbed_isolations,
        }

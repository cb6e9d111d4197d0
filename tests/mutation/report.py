"""Results of a share of the mutants, and whether enough were killed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.mutation.settings import KILLED
from tests.mutation.survivors import Survivor

KILLED_MIN = 0.95
"""The share of mutants that tests must notice."""
_Z = 1.96
"""Standard deviations that 95 % of a normal distribution are within."""


@dataclass(frozen=True, slots=True)
class Share:
    """How many mutants of a module, or of all, were killed."""

    name: str
    mutants: int
    killed: int

    def interval(self) -> tuple[float, float]:
        """Return the 95 % confidence interval of the killed share (Wilson)."""
        if not self.mutants:
            return 0.0, 1.0
        n, share = self.mutants, self.killed / self.mutants
        middle = share + _Z**2 / (2 * n)
        width = _Z * math.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
        scale = 1 + _Z**2 / n
        return max(0.0, (middle - width) / scale), min(1.0, (middle + width) / scale)

    def __str__(self) -> str:
        low, high = self.interval()
        share = self.killed / self.mutants if self.mutants else 0.0
        return (
            f"{self.name:22} {self.killed:5} of {self.mutants:5} killed  "
            f"{share:6.1%}  ({low:.1%} to {high:.1%})"
        )


@dataclass(frozen=True, slots=True)
class Report:
    """The figures of one share of the mutants."""

    mutants: int
    killed: int
    with_a_reason: int
    """Survivors that ``survivors.toml`` lists."""
    without_a_reason: list[Survivor]
    modules: dict[str, tuple[int, int]]
    """Mutants and killed ones by module."""
    stages: dict[str, int]
    """Killed mutants by stage: tests, or the simulator after them."""

    @property
    def killed_share(self) -> float:
        """Return the share of killed mutants; 0 mutants prove nothing."""
        return self.killed / self.mutants if self.mutants else 0.0

    @property
    def has_passed(self) -> bool:
        """Return whether enough were killed and every survivor has a reason."""
        return self.killed_share >= KILLED_MIN and not self.without_a_reason

    def by_module(self) -> list[Share]:
        """Return the figures of each module by name."""
        return [Share(name, *self.modules[name]) for name in sorted(self.modules)]

    def whole(self) -> Share:
        """Return the figures of all modules together."""
        return Share("all", self.mutants, self.killed)


def report(rows: Sequence[Mapping[str, str]], known: frozenset[Survivor]) -> Report:
    """Count the rows; ``known`` are the survivors that have a reason."""
    survivors = [
        Survivor(row["function"], row["change"]) for row in rows if row["status"] not in KILLED
    ]
    unknown = [each for each in survivors if each not in known]
    return Report(
        len(rows),
        len(rows) - len(survivors),
        len(survivors) - len(unknown),
        unknown,
        modules_of(rows),
        stages_of(rows),
    )


def stages_of(rows: Sequence[Mapping[str, str]]) -> dict[str, int]:
    """Return how many mutants each stage killed; rows of earlier runs name none."""
    return dict(Counter(row.get("stage", "tests") for row in rows if row["status"] in KILLED))


def modules_of(rows: Sequence[Mapping[str, str]]) -> dict[str, tuple[int, int]]:
    """Return how many mutants each module had in these rows, and how many were killed."""
    mutants = Counter(row["function"].partition(".")[0] for row in rows)
    killed = Counter(row["function"].partition(".")[0] for row in rows if row["status"] in KILLED)
    return {name: (count, killed[name]) for name, count in mutants.items()}

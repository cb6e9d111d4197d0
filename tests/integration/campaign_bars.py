"""What a campaign on real processes must come to, so that its figures show something.

Pure: each takes what was counted and returns one sentence per bar that is missed, so that the bars
themselves can be shown to fail (``tests/evidence/bar_cases.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.integration.kill_campaign import Tally

ROUNDS = 50
ROUNDS_LOSING_UNSYNCED_MIN = 10
WAIT_SECONDS_MAX = 1.0
WRITES_PER_RESTART_MIN = 20
LOAD_GROWTH_MAX = 1.2
"""Fetches and bytes: twenty that fetch directly cost five times as much as two and two voters."""
CPU_GROWTH_MAX = 1.6
"""Eighteen more processes on the same processors make each of them dearer."""


def kill_problems(tally: Tally, acknowledged: int, violations: Sequence[str]) -> list[str]:
    """Check fifty SIGKILLs under load; ``acknowledged`` counts writes."""
    found = list(violations)
    if tally.rounds != ROUNDS:
        found.append(f"{tally.rounds} rounds, {ROUNDS} were planned")
    if tally.rounds_losing_unsynced < ROUNDS_LOSING_UNSYNCED_MIN:
        found.append(f"only {tally.rounds_losing_unsynced} rounds lost what was not synced")
    if not tally.checkpoints:
        found.append("no checkpoint was written")
    if not tally.trims:
        found.append("no log was trimmed")
    if acknowledged <= ROUNDS:
        found.append(f"{acknowledged} writes were acknowledged, not more than one per round")
    return found


@dataclass(frozen=True, slots=True)
class Restarts:
    """What stopping and starting every node under load came to."""

    restarts: int
    transferred: int
    """Leaders that transferred leadership before they stopped."""
    acknowledged: int
    longest_wait_s: float
    """Of a write, without what the processes waited for a processor."""


def restart_problems(came_to: Restarts, violations: Sequence[str]) -> list[str]:
    """Check a rolling restart."""
    found = list(violations)
    if not came_to.transferred:
        found.append("no leader transferred leadership before it stopped")
    if came_to.acknowledged <= WRITES_PER_RESTART_MIN * came_to.restarts:
        found.append(f"{came_to.acknowledged} writes are no load for {came_to.restarts} restarts")
    if came_to.longest_wait_s > WAIT_SECONDS_MAX:
        found.append(f"a write waited {came_to.longest_wait_s:.3f} s")
    return found


@dataclass(frozen=True, slots=True)
class Cost:
    """What one acknowledged write cost the leader."""

    fetches: float
    bytes: float
    cpu_ms: float

    def __str__(self) -> str:
        return f"{self.fetches:.2f} Fetches, {self.bytes:.0f} bytes, {self.cpu_ms:.2f} ms"


def relay_problems(with_two: Cost, with_twenty: Cost, *, value_bytes: int) -> list[str]:
    """Check the leader's cost with 2 and with 20 observers; a write carries ``value_bytes``.

    Two voters fetch from the leader, so a true count has a Fetch and twice the value's bytes.
    """
    found = []
    if with_two.fetches < 1:
        found.append(f"{with_two.fetches:.2f} Fetches per write: they were not counted")
    if with_two.bytes <= 2 * value_bytes:
        found.append(f"{with_two.bytes:.0f} bytes per write: they were not counted")
    for name, growth_max in (
        ("fetches", LOAD_GROWTH_MAX),
        ("bytes", LOAD_GROWTH_MAX),
        ("cpu_ms", CPU_GROWTH_MAX),
    ):
        least, most = getattr(with_two, name), getattr(with_twenty, name)
        if most > least * growth_max:
            found.append(f"{name} per write grew from {least:.2f} to {most:.2f}")
    return found

"""Lanes: many seeds at once, and the least that must have happened in them.

A run in which nothing happened proves nothing: a lane fails when the faults it was made for did
not occur often enough.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from tests.simulation.cluster import Counts
from tests.simulation.episode import STORM_EVENTS, Outcome, run

MINIMA_PER_100_SEEDS: dict[str, int] = {
    "events": 100 * STORM_EVENTS,
    "leaders": 300,
    "truncations": 50,
    "installs": 100,
    "checkpoints": 2_000,
    "crashes": 600,
    "lossy_crashes": 200,
    "duplicates": 300,
    "acknowledged": 8_000,
    "reads": 5_000,
    "lost": 800,
    "duplicated": 800,
    "cut": 4_000,
    "refused": 300,
    "rotted": 20,
    "quarantines": 20,
}
"""Well below what a hundred seeds show: leader changes, logs cut on divergence, checkpoints
downloaded, crashes that lost written bytes or work under way, retries answered as duplicates,
linearizable reads confirmed, and so on."""


@dataclass(frozen=True, slots=True)
class LaneReport:
    """What the seeds of a lane came to."""

    seeds: int
    counts: Counts
    failures: tuple[str, ...]

    def shortfalls(self) -> list[str]:
        """What happened less often than it must, one sentence each."""
        found = []
        for name, least in MINIMA_PER_100_SEEDS.items():
            seen = getattr(self.counts, name)
            needed = least * self.seeds // 100
            if seen < needed:
                found.append(f"{name}: {seen} in {self.seeds} seeds, at least {needed} are needed")
        return found


def run_lane(seeds: Iterable[int]) -> LaneReport:
    """Run the seeds on every processor there is; the order of results is that of the seeds."""
    total, failures, count = Counts(), [], 0
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context) as pool:
        for outcome in pool.map(_run_quietly, seeds, chunksize=4):
            count += 1
            total.add(outcome[1])
            if outcome[0]:
                failures.append(outcome[0])
    return LaneReport(count, total, tuple(failures))


def _run_quietly(seed: int) -> tuple[str, Counts]:
    outcome: Outcome = run(seed)
    return ("" if outcome.violation is None else outcome.report()), outcome.counts

"""Lanes: many seeds at once, and the minima of what must happen in them.

A run in which nothing happened proves nothing. A lane fails when the faults it was made for did not
occur often enough.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import islice

from simulation.counts import Counts
from simulation.enforcement import enforced
from simulation.episode import run
from simulation.options import Options

_AHEAD = 4
"""Seeds queued per process ahead of the results."""


@dataclass(frozen=True, slots=True)
class SeedResult:
    """The result of one seed, small enough to send between processes."""

    seed: int
    counts: Counts
    virtual_us: int
    healed_us: int
    cpu_s: float
    """Processor time of the run."""
    progress_percent: int = 0
    """See ``Outcome``."""
    failure: str = ""
    """The report of a violation."""


@dataclass(slots=True)
class LaneReport:
    """The sum of the results of a lane."""

    options: Options
    seeds: int = 0
    counts: Counts = field(default_factory=Counts)
    virtual_us: int = 0
    cpu_s: float = 0.0
    healed_us_max: int = 0
    progress_percent_max: int = 0
    failures: list[tuple[int, str]] = field(default_factory=list)
    """Pairs of seed and report, in the order of seeds when ``run_lane`` returns."""

    def add(self, result: SeedResult) -> None:
        """Add the result of one seed."""
        self.seeds += 1
        self.counts.add(result.counts)
        self.cpu_s += result.cpu_s
        self.virtual_us += result.virtual_us
        self.healed_us_max = max(self.healed_us_max, result.healed_us)
        self.progress_percent_max = max(self.progress_percent_max, result.progress_percent)
        if result.failure:
            self.failures.append((result.seed, result.failure))

    @property
    def rate(self) -> int:
        """Return events per second of processor time, so per core under any other load."""
        return round(self.counts.events / self.cpu_s) if self.cpu_s else 0

    def shortfalls(self) -> list[str]:
        """Return one sentence for each counter that is below its minimum.

        Where the minima do not apply (see ``enforcement``) only the length of fault phases is
        checked. A lane without a seed proves nothing and has a shortfall.
        """
        if not self.seeds:
            return ["no seed was run"]
        seen = self.counts.numbers()
        return [
            f"{name}: {seen.get(name, 0)} in {self.seeds} seeds, at least {needed} are needed"
            for name, needed in enforced(self.options, self.seeds).items()
            if seen.get(name, 0) < needed
        ]


def run_seed(seed: int, options: Options) -> SeedResult:
    """Run one seed without printing."""
    began_s = time.process_time()
    # A run is short, so collecting reference cycles during it is wasted time.
    gc.disable()
    try:
        outcome = run(seed, options, is_traced=False)
    finally:
        gc.enable()
    return SeedResult(
        seed,
        outcome.counts,
        outcome.virtual_us,
        outcome.healed_us,
        time.process_time() - began_s,
        outcome.progress_percent,
        "" if outcome.violation is None else outcome.report(),
    )


def run_lane(
    seeds: Iterable[int],
    options: Options | None = None,
    *,
    jobs: int = 0,
    on_result: Callable[[SeedResult], None] | None = None,
) -> LaneReport:
    """Run the seeds, ``jobs`` at a time (0: one per processor).

    ``on_result`` is called for each seed as it ends, in no particular order. Seeds are taken from
    the iterable only as processes become free, so it may be endless and stop when time is up.
    """
    options = options if options is not None else Options()
    report = LaneReport(options)
    for result in _results(iter(seeds), options, jobs or os.cpu_count() or 1):
        report.add(result)
        if on_result is not None:
            on_result(result)
    report.failures.sort()
    return report


def _results(seeds: Iterator[int], options: Options, jobs: int) -> Iterator[SeedResult]:
    if jobs == 1:
        for seed in seeds:
            yield run_seed(seed, options)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        open_: set[Future[SeedResult]] = set()
        while True:
            for seed in islice(seeds, _AHEAD * jobs - len(open_)):
                open_.add(pool.submit(run_seed, seed, options))
            if not open_:
                return
            done, open_ = wait(open_, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()

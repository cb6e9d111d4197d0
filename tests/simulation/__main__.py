"""``python -m tests.simulation --seed N [--trace]`` or ``--seeds A..B``: run and report."""

from __future__ import annotations

import argparse
import sys
import time

from tests.simulation.cluster import Counts
from tests.simulation.episode import STORM_EVENTS, run


def main(arguments: list[str] | None = None) -> int:
    """Run the seeds asked for; 1 when one of them fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--seed", type=int, help="one seed")
    chosen.add_argument("--seeds", help="A..B, the latter exclusive")
    parser.add_argument("--trace", action="store_true", help="print every event")
    parser.add_argument("--events", type=int, default=STORM_EVENTS)
    options = parser.parse_args(arguments)
    if options.seed is not None:
        seeds = range(options.seed, options.seed + 1)
    else:
        first, _, end = options.seeds.partition("..")
        seeds = range(int(first), int(end))
    total, failures = Counts(), 0
    began = time.perf_counter()
    for seed in seeds:
        on_line = (lambda line: print(line)) if options.trace else None  # noqa: T201 - asked for
        outcome = run(seed, events=options.events, on_line=on_line)
        total.add(outcome.counts)
        if outcome.violation is not None:
            failures += 1
            print(outcome.report(), flush=True)  # noqa: T201 - a report
        elif len(seeds) == 1:
            print(f"seed {seed} clean, trace {outcome.trace_hash}")  # noqa: T201 - a report
    seconds = time.perf_counter() - began
    print(  # noqa: T201 - a report
        f"{len(seeds)} seeds, {failures} failed, {total.events / seconds:.0f} events/s; {total}"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

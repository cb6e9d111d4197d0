"""``quorate sim recoveries``: logs that lose history, their readers and their programs."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict

import click

from quorate.cli.command import LocalCommand, pass_session
from quorate.cli.exits import CliError, Exit
from quorate.cli.output import Result
from quorate.cli.ranges import WholeNumber
from quorate.cli.session import Session
from quorum.errors import InvariantViolation, QuorateError
from simulation.expected_warnings import without_consumer_warnings
from simulation.invariants.violation import Violation
from simulation.recoveries.counts import RecoveryCounts

SEEDS_FOR_ALL = 200
"""With so many seeds, each situation that is counted must have occurred."""
_CHUNK = 8


@click.command(cls=LocalCommand)
@click.option("--seeds", type=WholeNumber(min=1), default=1000, show_default=True,
              help="Number of runs.")  # fmt: skip
@click.option("--first", type=WholeNumber(min=0), default=0, show_default=True,
              help="First seed.")  # fmt: skip
@click.option("--jobs", type=WholeNumber(min=1), default=1, show_default=True,
              help="Processes at a time.")  # fmt: skip
@pass_session
def recoveries(session: Session, seeds: int, first: int, jobs: int) -> None:
    """Lose majorities, recover from one disk, and check readers and programs over it.

    In every run: no record of the surviving history is skipped, every truncation is reported at its
    true offset, deposed leaders and former voters cause no false alarm, no output of
    read-process-write is there twice, and no former process writes. Exits 1 when a seed fails, and
    3 when a situation did not occur in so many seeds that it should have.
    """
    # Loaded here: help needs neither clients nor replicas.
    from simulation.recoveries.run import NAMES

    total = RecoveryCounts()
    failures: list[str] = []
    with session.progress("seeds", seeds) as bar:
        for counts, failure in _results(range(first, first + seeds), jobs):
            total.add(counts)
            failures += [failure] if failure else []
            bar.advance(1)
    session.show(
        Result(
            "RecoveryRuns",
            {"seeds": seeds, "failed": len(failures), "properties": list(NAMES), **asdict(total)},
        )
    )
    refuse(seeds, failures, total)


def refuse(seeds: int, failures: list[str], total: RecoveryCounts) -> None:
    """Refuse a run in which a seed failed, or a situation never occurred.

    Raises:
        CliError: That is so.
    """
    if failures:
        raise CliError(f"{len(failures)} of {seeds} seeds failed: " + "; ".join(failures[:3]))
    missing = total.missing() if seeds >= SEEDS_FOR_ALL else []
    if missing:
        raise CliError("it never occurred: " + ", ".join(missing), code=Exit.UNHEALTHY)


def run_seed(seed: int) -> tuple[RecoveryCounts, str]:
    """Return what happened in a run, and the property that it violated; empty for none."""
    from simulation.recoveries.run import RecoveryRun

    run = RecoveryRun(seed)
    try:
        with without_consumer_warnings():
            run.run()
    except (Violation, QuorateError, InvariantViolation, AssertionError) as error:
        return run.counts, f"seed {seed}: {error!r}"
    return run.counts, ""


def _results(seeds: Iterable[int], jobs: int) -> Iterator[tuple[RecoveryCounts, str]]:
    if jobs == 1:
        yield from map(run_seed, seeds)
        return
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(run_seed, seeds, chunksize=_CHUNK)

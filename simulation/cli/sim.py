"""``quorate sim``: clusters in one process on simulated time, network and disks."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from quorate.cli.command import LocalGroup, pass_session
from quorate.cli.exits import CliError, Exit
from quorate.cli.output import Result
from quorate.cli.ranges import Number, WholeNumber
from quorate.cli.session import Session
from simulation.cli.sim_explore import explore
from simulation.cli.sim_laboratory import laboratory, story
from simulation.cli.sim_recoveries import recoveries
from simulation.enforcement import NOT_ENFORCED, enforced, why_not_enforced
from simulation.options import FAULT_PHASE_EVENTS, OBSERVERS_MAX, VOTERS_MAX, Options
from simulation.profiles import PROFILES
from simulation.scenario.command_line import main as scenario

if TYPE_CHECKING:
    from simulation.lanes import LaneReport, SeedResult

_FAILURES_SHOWN = 3


@click.group(cls=LocalGroup)
def sim() -> None:
    """Run the cluster's own code on simulated time, network and disks, and inject faults."""


def _counts(least: int, most: int) -> Callable[[click.Context, click.Parameter, str], Any]:
    """Return a callback that parses ``1,3,5``; an empty text gives no numbers."""

    def read(_context: click.Context, _parameter: click.Parameter, text: str) -> tuple[int, ...]:
        try:
            counts = tuple(int(part) for part in text.split(",")) if text else ()
        except ValueError:
            raise click.BadParameter(f"{text!r} is not a list of numbers such as 1,3,5") from None
        if not all(least <= count <= most for count in counts):
            raise click.BadParameter(f"each must be {least} to {most}")
        return counts

    return read


def _seeds(_context: click.Context, _parameter: click.Parameter, text: str) -> range:
    first, dots, end = text.partition("..")
    try:
        seeds = range(int(first), int(end)) if dots else range(1, 1 + int(first))
    except ValueError:
        raise click.BadParameter(f"{text!r} is neither a number nor A..B") from None
    if not seeds or seeds[0] < 0:
        raise click.BadParameter(f"{text!r} has no seeds")
    return seeds


def _shape(command: Any) -> Any:
    """Add the options that, with a seed, decide everything."""
    for option in (
        click.option(
            "--events",
            type=WholeNumber(min=1),
            default=FAULT_PHASE_EVENTS,
            show_default=True,
            help="Length of the fault phase, in delivered messages, disk passes and client steps.",
        ),
        click.option(
            "--faults",
            type=click.Choice(sorted(PROFILES)),
            default="default",
            show_default=True,
            help="The profile: which faults occur, and how often.",
        ),
        click.option(
            "--observers",
            default="",
            metavar="N,...",
            callback=_counts(0, OBSERVERS_MAX),
            help="How many observers there may be (default: 0 to 3, mostly none).",
        ),
        click.option(
            "--voters",
            default="",
            metavar="N,...",
            callback=_counts(1, VOTERS_MAX),
            help="How many voters there may be (default: 1 to 5, mostly 3 and 5).",
        ),
    ):
        command = option(command)
    return command


@sim.command("run")
@click.option(
    "--seeds",
    metavar="N|A..B",
    callback=_seeds,
    default="100",
    show_default=True,
    help="The first N seeds, or A..B without B.",
)
@_shape
@click.option(
    "--minutes",
    type=Number(min=0, min_open=True),
    help="Go on with new seeds for so many minutes.",
)
@click.option(
    "--jobs", type=WholeNumber(min=1), help="Processes at a time (default: all processors)."
)
@pass_session
def run(
    session: Session,
    seeds: range,
    voters: tuple[int, ...],
    observers: tuple[int, ...],
    faults: str,
    events: int,
    minutes: float | None,
    jobs: int | None,
) -> None:
    """Run many seeds, each a cluster of its own, and report what happened.

    Each run has two phases. In the fault phase, safety is checked after every event. In the healing
    phase, within 30 simulated seconds there must be one leader, every node must have the same log,
    a fresh write and a linearizable read must be served, and every acknowledged write must be
    present once. In half of the runs a minority stays down or cut off at first. The other nodes
    must serve the write and the read without it, within two fetch timeouts, twelve election
    timeouts and a request timeout. Exits 1 when a seed fails, with its last fifty lines and the
    command that replays it, and 3 when too little happened to prove anything. LEAST is the required
    minimum, by seeds and events; it is not enforced, and not shown, for custom shapes, few seeds
    and short fault phases.
    """
    # Loaded here: help needs no simulated cluster.
    from simulation.lanes import run_lane

    options = Options(faults, voters, observers, events)
    began = time.monotonic()
    end = began + 60 * minutes if minutes is not None else None
    with session.progress("seeds" if end is None else "minutes", _total(seeds, minutes)) as bar:
        reported = began

        def advance(_: SeedResult) -> None:
            nonlocal reported
            now = time.monotonic()
            bar.advance(1 if end is None else (now - reported) / 60)
            reported = now

        report = run_lane(
            seeds_until(seeds, end), options, jobs=jobs or os.cpu_count() or 1, on_result=advance
        )
    seconds = time.monotonic() - began
    shortfalls = report.shortfalls()
    session.show(_result(report, shortfalls, seconds))
    for _, failure in report.failures[:_FAILURES_SHOWN]:
        click.echo(failure, err=True)
    refuse(report, shortfalls)


def refuse(report: LaneReport, shortfalls: list[str]) -> None:
    """Raise if the run shows a defect, or proves nothing.

    Raises:
        CliError: A seed failed, or too little happened.
    """
    if report.failures:
        failed = ", ".join(str(seed) for seed, _ in report.failures)
        raise CliError(f"{len(report.failures)} of {report.seeds} seeds failed: {failed}")
    if shortfalls:
        raise CliError("too little happened: " + "; ".join(shortfalls), code=Exit.UNHEALTHY)


def _total(seeds: range, minutes: float | None) -> float:
    return len(seeds) if minutes is None else minutes


def seeds_until(seeds: range, end: float | None) -> Iterator[int]:
    """Return the seeds; with an end in time, further seeds as well until it has come."""
    if end is None:
        yield from seeds
        return
    seed = seeds[0]
    while time.monotonic() < end:
        yield seed
        seed += 1


def _result(report: LaneReport, shortfalls: list[str], seconds: float) -> Result:
    least = enforced(report.options, report.seeds)
    reason = why_not_enforced(report.options, report.seeds)
    otherwise = NOT_ENFORCED if reason else 0
    rows = [
        {"what": name, "count": count, "least": least.get(name, otherwise)}
        for name, count in report.counts.numbers().items()
    ]
    return Result(
        "SimulationRun",
        {
            "faults": report.options.profile,
            "budget": report.options.faults.budget,
            "seeds": report.seeds,
            "failed_seeds": [seed for seed, _ in report.failures],
            "events_per_cpu_second": report.rate,
            "seconds": round(seconds, 1),
            "simulated_seconds": report.virtual_us // 1_000_000,
            "longest_healing_ms": report.healed_us_max // 1_000,
            "longest_progress_percent": report.progress_percent_max,
            "minima": f"{NOT_ENFORCED}: {reason}" if reason else "enforced",
            "shortfalls": shortfalls,
        },
        rows,
        ("what", "count", "least"),
    )


@sim.command("replay")
@click.argument("seed", type=WholeNumber(min=0))
@_shape
@click.option("--trace", is_flag=True, help="Print every event.")
@pass_session
def replay(
    session: Session,
    seed: int,
    voters: tuple[int, ...],
    observers: tuple[int, ...],
    faults: str,
    events: int,
    trace: bool,
) -> None:
    """Run one SEED again: the same options give the same events.

    Prints the trace's hash, which is the same in every process. Exits 1 when the run fails.
    """
    from simulation.episode import run as run_seed

    options = Options(faults, voters, observers, events)
    outcome = run_seed(seed, options, on_line=click.echo if trace else None)
    if outcome.violation is not None:
        click.echo(outcome.report(), err=True)
        raise CliError(f"seed {seed} failed: {outcome.violation.name}")
    session.show(
        Result(
            "SimulationReplay",
            {
                "seed": seed,
                "trace": outcome.trace_hash,
                "simulated_ms": outcome.virtual_us // 1_000,
                "healing_ms": outcome.healed_us // 1_000,
                "happened": outcome.counts.numbers(),
            },
        )
    )


sim.add_command(scenario, "scenario")
sim.add_command(story)
sim.add_command(laboratory)
sim.add_command(recoveries)
sim.add_command(explore, "explore")

"""``python -m tests.simulation --seed N [--trace]`` or ``--seeds A..B``: run and report."""

from __future__ import annotations

import argparse

import click

from simulation.episode import run
from simulation.lanes import LaneReport, run_lane
from simulation.options import FAULT_PHASE_EVENTS, Options
from simulation.profiles import PROFILES


def main(arguments: list[str] | None = None) -> int:
    """Run the requested seeds one after the other; return 1 if one of them fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--seed", type=int, help="one seed")
    chosen.add_argument("--seeds", help="A..B, the latter exclusive")
    parser.add_argument("--faults", choices=sorted(PROFILES), default="default")
    parser.add_argument("--trace", action="store_true", help="print every event")
    parser.add_argument("--events", type=int, default=FAULT_PHASE_EVENTS)
    parsed = parser.parse_args(arguments)
    options = Options(profile=parsed.faults, events=parsed.events)
    if parsed.seed is not None:
        return run_one(parsed.seed, options, is_traced=parsed.trace)
    first, _, end = parsed.seeds.partition("..")
    report = run_lane(
        range(int(first), int(end)),
        options,
        jobs=1,
        on_result=lambda result: click.echo(result.failure) if result.failure else None,
    )
    click.echo(one_line(report))
    return 1 if report.failures else 0


def run_one(seed: int, options: Options, *, is_traced: bool) -> int:
    """Run one seed and print its outcome, with every event if requested."""
    outcome = run(seed, options, on_line=click.echo if is_traced else None)
    if outcome.violation is not None:
        click.echo(outcome.report())
        return 1
    click.echo(f"seed {seed} clean, trace {outcome.trace_hash}")
    return 0


def one_line(report: LaneReport) -> str:
    """Return a lane's report as one line."""
    return (
        f"{report.seeds} seeds, {len(report.failures)} failed, "
        f"{report.rate} events/s; {report.counts}"
    )

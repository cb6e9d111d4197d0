"""``quorate sim explore``: every interleaving of a small cluster, exhaustively."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from quorate.cli.command import LocalCommand, pass_session
from quorate.cli.exits import CliError, Exit
from quorate.cli.output import Result
from quorate.cli.ranges import WholeNumber
from quorate.cli.session import Session
from simulation.explore.models import MODELS

if TYPE_CHECKING:
    from simulation.explore.search import Report

STATES_MAX = 10_000_000
"""Needs about 4 GB of memory."""


@click.command("explore", cls=LocalCommand)
@click.argument("model", type=click.Choice(sorted(MODELS)))
@click.option(
    "--states",
    type=WholeNumber(min=1),
    default=STATES_MAX,
    show_default=True,
    help="Stop beyond this many.",
)
@pass_session
def explore(session: Session, model: str, states: int) -> None:
    """Try every interleaving of a small cluster of the production consensus core.

    Deliveries, disk writes, timers, crashes, proposals and removals happen in every order that the
    bounds of MODEL allow, and safety is checked after each. Prints the bounds and the number of
    states and transitions. Exits 1 with the shortest path to a violation, and 3 when the limit was
    reached before the end.
    """
    # Loaded here: help needs no core.
    from simulation.explore.search import explore as search

    began = time.monotonic()

    with session.progress("states", None) as bar:
        reported_count = 0

        def on_level(_depth: int, seen: int) -> None:
            nonlocal reported_count
            bar.advance(seen - reported_count)
            reported_count = seen

        report = search(MODELS[model], states_max=states, on_level=on_level)
    session.show(_result(report, time.monotonic() - began))
    refuse(report, states)


def refuse(report: Report, states_max: int) -> None:
    """Raise if an invariant does not hold, or if not every state was visited.

    Raises:
        CliError: Either of these; the shortest path to a violation goes to standard error.
    """
    if report.violation is not None:
        from simulation.explore.report_lines import report_lines

        for line in report_lines(report):
            click.echo(line, err=True)
        raise CliError(f"{report.model.name}: {report.violation.name} does not hold")
    if not report.is_complete:
        raise CliError(f"{report.model.name}: more than {states_max} states", code=Exit.UNHEALTHY)


def _result(report: Report, seconds: float) -> Result:
    return Result(
        "SimulationExploration",
        {
            "model": report.model.name,
            "what": report.model.goal,
            **report.model.bounds(),
            "states": report.states,
            "transitions": report.transitions,
            "depth": report.depth,
            "to_the_end": report.is_complete,
            "states_of_a_node": report.node_states,
            "steps_of_the_core": report.core_steps,
            "epochs_led": report.led_epochs,
            "longest_committed_log": report.committed_max,
            "violated": "" if report.violation is None else report.violation.name,
            "seconds": round(seconds, 1),
        },
    )

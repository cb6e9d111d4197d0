"""``quorate sim story`` and ``quorate sim laboratory``: the partition laboratory."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

import click

from quorate.cli.command import LocalCommand, pass_session
from quorate.cli.exits import CliError
from quorate.cli.output import Result
from quorate.cli.ranges import WholeNumber
from quorate.cli.session import Session
from quorum.errors import QuorateError
from simulation.expected_warnings import without_consumer_warnings
from simulation.invariants.violation import Violation
from simulation.scenario.grammar import ScenarioError


@click.command(cls=LocalCommand)
@click.option("--rewrite", is_flag=True, help="Replace outputs by what was seen; read the diff.")
@click.argument(
    "paths",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
)
def story(paths: tuple[Path, ...], *, rewrite: bool) -> None:
    """Run stories of consumers, producers and brokers; exits with 1 if an output differs."""
    # Loaded here: help needs neither clients nor replicas.
    from simulation.laboratory.script import run_story

    has_failed = False
    for path in paths:
        try:
            differences = run_story(path, rewrite=rewrite)
        except ScenarioError as error:
            click.echo(str(error), err=True)
            has_failed = True
            continue
        for difference in differences:
            click.echo(difference)
        has_failed = has_failed or bool(differences and not rewrite)
    sys.exit(1 if has_failed else 0)


@click.command(cls=LocalCommand)
@click.option("--seeds", type=WholeNumber(min=1), default=1000, show_default=True,
              help="Number of runs.")  # fmt: skip
@click.option("--first", type=WholeNumber(min=0), default=0, show_default=True,
              help="First seed.")  # fmt: skip
@pass_session
def laboratory(session: Session, seeds: int, first: int) -> None:
    """Run consumers, producers and brokers at random, and compare every answer with the logs."""
    from simulation.laboratory.random_run import RandomRun
    from simulation.laboratory.reader import Counts

    total = Counts()
    with session.progress("seeds", seeds) as bar, without_consumer_warnings():
        for seed in range(first, first + seeds):
            try:
                total.add(RandomRun(seed).run())
            except (Violation, QuorateError) as error:
                raise CliError(f"seed {seed}: {error}") from error
            bar.advance(1)
    session.show(Result("LaboratoryRuns", {"seeds": seeds, **asdict(total)}))

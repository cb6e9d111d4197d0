"""The command line: run scenario files and show what differs."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from simulation.scenario.grammar import ScenarioError


@click.command()
@click.option("--rewrite", is_flag=True, help="Replace outputs by what was seen; read the diff.")
@click.option("--coverage", "counts", is_flag=True, help="Print what the runs have shown.")
@click.argument(
    "paths",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
)
def main(paths: tuple[Path, ...], *, rewrite: bool, counts: bool) -> None:
    """Run scenario files; exits with 1 when an output is not the expected one.

    A file that is no scenario counts as one that differs; the others are run all the same.
    """
    # Loaded here: help needs no simulated cluster.
    from simulation.scenario.coverage import Coverage, report
    from simulation.scenario.runner import run_file

    has_failed = False
    coverage = Coverage()
    for path in paths:
        try:
            differences = run_file(path, rewrite=rewrite, coverage=coverage)
        except ScenarioError as error:
            click.echo(str(error), err=True)
            has_failed = True
            continue
        for difference in differences:
            click.echo(difference.text(path))
        has_failed = has_failed or bool(differences and not rewrite)
    if counts:
        click.echo("\n".join(report(coverage)))
    sys.exit(1 if has_failed else 0)

"""``quorate server``: run one node in the foreground."""

from __future__ import annotations

from pathlib import Path

import click

from quorate.cli.command import SessionCommand
from quorate.cli.exits import CliError, Exit
from quorate.cli.node_options import config_options, load
from quorate.doctor import foreign_packages


@click.command(cls=SessionCommand)
@config_options
@click.pass_context
def server(context: click.Context, file: Path | None, settings: tuple[str, ...]) -> None:
    """Run one node until it is told to stop.

    SIGTERM or SIGINT hands leadership over, drains and stops; a second one stops at once.
    """
    loaded = load(file, settings)
    problems = foreign_packages()
    if problems:
        raise CliError(
            "; ".join(problems),
            hint="install Quorate into an environment of its own",
            code=Exit.REFUSED,
        )
    from quorate.server import run

    context.exit(run(loaded.config))

"""``quorate server``: run one node in the foreground."""

from __future__ import annotations

from pathlib import Path

import click

from quorate.cli.command import SessionCommand
from quorate.cli.node_options import config_options, load


@click.command(cls=SessionCommand)
@config_options
@click.pass_context
def server(context: click.Context, file: Path | None, settings: tuple[str, ...]) -> None:
    """Run one node until it is told to stop.

    SIGTERM or SIGINT hands leadership over, drains and stops; a second one stops at once.
    """
    loaded = load(file, settings)
    from quorate.server import run

    context.exit(run(loaded.config))

"""``quorate server``: run one node in the foreground."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quorate.cli.command import LocalCommand
from quorate.cli.exits import CliError, Exit
from quorate.cli.node_options import config_options, load
from quorate.early_stop import EARLY_STOP_TEXT, EarlyStop, early_stop

if TYPE_CHECKING:
    from quorate.config.server_config import ServerConfig
    from quorate.server.guest import Guest

_RISK = (
    "UNSAFE: a new quorum may be bootstrapped without voters {}. If one of them has ever voted or "
    "holds records, this cluster may get two leaders in one epoch and lose what was "
    "acknowledged. A voter left out never votes with its directory id again; it has to be "
    "re-admitted under a new one. Counts in epoch 0 only: take the option away afterwards."
)


@click.command(cls=LocalCommand)
@config_options
@click.option(
    "--unsafe-bootstrap-without",
    metavar="ID,...",
    help="Found a new quorum although these voters do not answer; see what it prints.",
)
@click.pass_context
def server(
    context: click.Context,
    file: Path | None,
    settings: tuple[str, ...],
    unsafe_bootstrap_without: str | None,
) -> None:
    """Run one node until it is stopped.

    SIGTERM or SIGINT hands leadership over, drains and stops; a second one ends the process at
    once, as a crash would, with exit code 1, or 8 if the disk had failed. SIGHUP reads the
    configuration again: the log level changes, and the log names what else would need a restart.
    """
    if unsafe_bootstrap_without is not None:
        settings += (f"bootstrap.unsafe_bootstrap_without={unsafe_bootstrap_without}",)
    context.exit(run_node(file, settings))


def run_node(
    file: Path | None,
    settings: tuple[str, ...] = (),
    guest: Guest | None = None,
    check: Callable[[ServerConfig], None] = lambda _: None,
) -> int:
    """Run the node of a configuration until it is stopped; return the exit code.

    ``guest`` runs in the same process. ``check`` raises for a configuration that is not wanted.

    Raises:
        CliError, QuorateError: The node could not be started.
        Exception: As the guest.
    """
    try:
        with early_stop():
            return _run(file, settings, guest, check)
    except EarlyStop:
        click.echo(EARLY_STOP_TEXT, err=True)
        return Exit.OK


def _run(
    file: Path | None,
    settings: tuple[str, ...],
    guest: Guest | None,
    check: Callable[[ServerConfig], None],
) -> int:
    # Loaded here: help needs nothing of a node.
    from quorate.light_packages import load_lightly

    load_lightly()
    from quorate.doctor.checks import foreign_packages

    loaded = load(file, settings)
    check(loaded.config)
    missing = loaded.config.bootstrap.unsafe_bootstrap_without
    if missing:
        click.echo(_RISK.format(", ".join(missing)), err=True)
    problems = foreign_packages()
    if problems:
        raise CliError(
            "; ".join(problems),
            hint="install Quorate into an environment of its own",
            code=Exit.REFUSED,
        )
    from quorate.server import run

    return run(loaded, lambda: load(file, settings), guest)

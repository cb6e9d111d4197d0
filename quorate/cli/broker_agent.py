"""``quorate broker-agent``: a broker's agent as a process of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from quorate import client as library
from quorate.cli.agent_run import AgentRun
from quorate.cli.broker import parse_listener
from quorate.cli.command import SessionCommand
from quorate.cli.connection import refusal_exit
from quorate.cli.exits import CliError, Exit
from quorate.cli.ranges import Seconds, WholeNumber
from quorate.cli.session import Session

_SECONDS = Seconds(min=0.1)


@click.command(cls=SessionCommand)
@click.argument("broker_id", type=WholeNumber(min=0))
@click.option(
    "--listener",
    "listeners",
    multiple=True,
    required=True,
    metavar="NAME://HOST:PORT",
    help="Where clients reach the broker. Repeatable.",
)
@click.option(
    "--data-dir",
    "data_dirs",
    multiple=True,
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="A log directory; made if it does not exist. Repeatable.",
)
@click.option(
    "--observer",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Run the observer of this configuration in the process, and follow its log.",
)
@click.option("--rack", help="The rack the broker stands in.")
@click.option(
    "--heartbeat-interval",
    "heartbeat_seconds",
    type=_SECONDS,
    default=2.0,
    show_default=True,
    help="Seconds between heartbeats; well below the session timeout.",
)
@click.option(
    "--registration-timeout",
    "registration_seconds_max",
    type=_SECONDS,
    default=60.0,
    show_default=True,
    help="Seconds to wait for the first registration.",
)
@click.option(
    "--shutdown-timeout",
    "shutdown_seconds_max",
    type=_SECONDS,
    default=60.0,
    show_default=True,
    help="Seconds that a controlled shutdown may take.",
)
@click.pass_context
def broker_agent(
    context: click.Context,
    broker_id: int,
    listeners: tuple[str, ...],
    data_dirs: tuple[Path, ...],
    observer: Path | None,
    rack: str | None,
    heartbeat_seconds: float,
    registration_seconds_max: float,
    shutdown_seconds_max: float,
) -> None:
    """Run the agent of the broker BROKER_ID until it is stopped.

    It registers, sends heartbeats, follows the metadata, and prints the commands that follow
    from it for this broker: one line each, JSON with -o json. It makes a folder for each
    replica in its log directories, and no data. SIGTERM or SIGINT begins a controlled
    shutdown; a second one ends the process at once. Exit code 5: another process has the id.

    It watches a node, and reads the whole state at its start. With --observer it has a log of
    its own: the process is also the node of that configuration, which `quorate format
    --no-initial-voters` has prepared. It then begins where it stopped.
    """
    times = {
        "heartbeat_seconds": heartbeat_seconds,
        "registration_seconds_max": registration_seconds_max,
        "shutdown_seconds_max": shutdown_seconds_max,
    }
    parsed = tuple(parse_listener(text) for text in listeners)
    session = context.ensure_object(Session)
    options = {"listeners": parsed, "rack": rack, **times}
    run = AgentRun(session, session.servers(), broker_id, data_dirs, options)

    # Loaded here: other commands need neither.
    from quorate.broker_agent.errors import AgentError, DuplicateBrokerError

    try:
        if observer is None:
            asyncio.run(run.as_client())
        else:
            # Loaded here: a client needs no server.
            from quorate.cli.broker_observer import run_with_observer

            context.exit(run_with_observer(run, observer))
    except DuplicateBrokerError as error:
        raise CliError(str(error), code=Exit.CONFLICT) from error
    except AgentError as error:
        raise CliError(str(error), code=_exit_for(error.__cause__)) from error
    except library.ClientError as error:
        raise CliError(str(error), code=_exit_for(error)) from error


def _exit_for(error: BaseException | None) -> Exit:
    if isinstance(error, library.RefusedError):
        return refusal_exit(error.code)
    return Exit.UNREACHABLE if isinstance(error, library.ClientError) else Exit.FAILED

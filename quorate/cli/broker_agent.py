"""``quorate broker-agent``: a broker's agent as a process of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quorate import client as library
from quorate.cli.broker import parse_listener
from quorate.cli.command import SessionCommand, pass_session
from quorate.cli.connection import client_of, refusal_exit
from quorate.cli.exits import CliError, Exit
from quorate.cli.output import SCHEMA_VERSION, Result, write_lines
from quorate.cli.session import Session

if TYPE_CHECKING:
    from quorate.broker_agent.agent import BrokerAgent
    from quorate.client import Client

_TOPICS_SHOWN = 5
_PARTITIONS_SHOWN = 10
_SECONDS = click.FloatRange(min=0.1)


@click.command(cls=SessionCommand)
@click.argument("broker_id", type=click.IntRange(min=0))
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
@pass_session
def broker_agent(
    session: Session,
    broker_id: int,
    listeners: tuple[str, ...],
    data_dirs: tuple[Path, ...],
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
    """
    times = {
        "heartbeat_seconds": heartbeat_seconds,
        "registration_seconds_max": registration_seconds_max,
        "shutdown_seconds_max": shutdown_seconds_max,
    }
    parsed = tuple(parse_listener(text) for text in listeners)
    servers = session.servers()

    async def run() -> None:
        async with client_of(session, servers) as client:
            options = {"listeners": parsed, "rack": rack, **times}
            await _run(session, client, broker_id, data_dirs, options)

    # Loaded here: other commands need neither.
    from quorate.broker_agent.errors import AgentError, DuplicateBrokerError

    try:
        asyncio.run(run())
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


async def _run(
    session: Session,
    client: Client,
    broker_id: int,
    data_dirs: tuple[Path, ...],
    options: Mapping[str, Any],
) -> None:
    from quorate.broker_agent.agent import BrokerAgent
    from quorate.broker_agent.hosting import HostingHandler
    from quorate.broker_agent.log_directory import LogDirectory
    from quorate.broker_agent.settings import AgentSettings
    from quorum.types import draw_directory_id

    stop = _stop_on_signals()
    cluster_id = await _cluster_id(session, client, stop, options["registration_seconds_max"])
    if not cluster_id:
        return
    with ExitStack() as opened:
        directories = []
        for path in data_dirs:
            directory = LogDirectory(path, cluster_id, broker_id)
            opened.callback(directory.close)
            directories.append(directory)
        # Every directory has the mark of a clean shutdown, or none counts.
        marks = {each.clean_shutdown_epoch() for each in directories}
        settings = AgentSettings(
            broker_id,
            cluster_id,
            draw_directory_id(os.urandom),
            log_dirs=tuple(each.id for each in directories),
            previous_broker_epoch=marks.pop() if len(marks) == 1 else -1,
            **options,
        )
        show = _Lines(session)
        agent = BrokerAgent(client, settings, HostingHandler(broker_id, directories, show.show))
        stopping = asyncio.get_running_loop().create_task(_shut_down_after(stop, agent))
        try:
            ended = await agent.run()
        finally:
            stopping.cancel()
        if ended.is_clean:
            for each in directories:
                each.mark_clean_shutdown(ended.broker_epoch)
        show.show(
            {"event": "Ended", "broker_epoch": ended.broker_epoch, "is_clean": ended.is_clean}
        )


def _stop_on_signals() -> asyncio.Event:
    """Return what the first stop signal sets; a second one ends the process, as a crash would."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    numbers = (signal.SIGINT, signal.SIGTERM)

    def set_once() -> None:
        stop.set()
        for number in numbers:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    for number in numbers:
        loop.add_signal_handler(number, set_once)
    return stop


async def _shut_down_after(stop: asyncio.Event, agent: BrokerAgent) -> None:
    await stop.wait()
    agent.shut_down()


async def _cluster_id(session: Session, client: Client, stop: asyncio.Event, seconds: float) -> str:
    """Return the id of the cluster; empty if a stop was requested first.

    A broker may be started before its cluster, so nodes that do not answer are asked again.

    Raises:
        ClientError: None answered within ``seconds``.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    stopped = loop.create_task(stop.wait())
    try:
        while True:
            asked = loop.create_task(client.describe_cluster())
            await asyncio.wait((asked, stopped), return_when=asyncio.FIRST_COMPLETED)
            if not asked.done():
                asked.cancel()
                return ""
            try:
                return asked.result().cluster_id
            except library.UnavailableError as error:
                if loop.time() >= deadline:
                    raise
                session.announce(f"no node answers yet: {error}")
    finally:
        stopped.cancel()


class _Lines:
    """Writes documents to standard output as they come, one line each."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def show(self, document: Mapping[str, object]) -> None:
        """Write one document."""
        output = self._session.output
        if output in ("json", "jsonl"):
            head = {"kind": "BrokerAgentEvent", "version": SCHEMA_VERSION}
            write_lines([{**head, **document} if output == "json" else document], sys.stdout)
        elif output == "yaml":
            sys.stdout.write("---\n")
            self._session.show(Result("BrokerAgentEvent", document))
        else:
            sys.stdout.write(line_of(document) + "\n")
        sys.stdout.flush()


def line_of(document: Mapping[str, Any]) -> str:
    """Return a document as a line for people: numbers, words, and topics with partitions."""
    parts = [str(document["event"])]
    for name, value in document.items():
        if name == "topics":
            parts += [_topics(value)]
        elif name == "brokers":
            parts += [] if value is None else ["brokers=" + _brokers(value)]
        elif name != "event" and value is not None and not isinstance(value, list | dict):
            parts.append(f"{name}={str(value).lower() if isinstance(value, bool) else value}")
    return " ".join(part for part in parts if part)


def _topics(topics: list[dict[str, Any]]) -> str:
    shown = [f"{each['name']}:{_partitions(each['partitions'])}" for each in topics[:_TOPICS_SHOWN]]
    more = len(topics) - len(shown)
    return " ".join([*shown, f"and {more} more topics"] if more > 0 else shown)


def _partitions(partitions: list[Any]) -> str:
    shown = [
        f"{each['partition']}(leader={each['leader']})" if isinstance(each, dict) else str(each)
        for each in partitions[:_PARTITIONS_SHOWN]
    ]
    more = len(partitions) - len(shown)
    return ",".join([*shown, f"+{more}"] if more > 0 else shown)


def _brokers(brokers: list[dict[str, Any]]) -> str:
    return ",".join(
        f"{each['broker_id']}{'' if each['is_active'] else '(offline)'}" for each in brokers
    )

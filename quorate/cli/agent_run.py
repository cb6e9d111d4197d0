"""One run of a broker's agent on the command line, whichever way it follows the log."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quorate import client as library
from quorate.cli.agent_lines import AgentLines
from quorate.cli.connection import client_of
from quorate.cli.session import Session

if TYPE_CHECKING:
    from quorate.broker_agent.agent import AgentCalls, BrokerAgent
    from quorate.broker_agent.metadata_source import MetadataSource
    from quorate.client import Client


@dataclass(frozen=True, slots=True)
class AgentRun:
    """What an agent is started with, whichever way it follows the log."""

    session: Session
    servers: tuple[str, ...]
    broker_id: int
    data_dirs: tuple[Path, ...]
    options: Mapping[str, Any]

    async def as_client(self) -> None:
        """Run the agent until a signal comes; it follows the log by a watch.

        Raises:
            AgentError, ClientError, QuorateError: As ``BrokerAgent.run``.
        """
        from quorate.broker_agent.watched_log import WatchedLog

        stop, seconds = _stop_on_signals(), self.options["registration_seconds_max"]
        async with client_of(self.session, self.servers) as client:
            cluster_id = await _cluster_id(self.session, client, stop, seconds)
            if cluster_id:
                await self.until(stop, cluster_id, client, WatchedLog(client.watch))

    async def until(
        self, stop: asyncio.Event, cluster_id: str, calls: AgentCalls, source: MetadataSource
    ) -> None:
        """Run the agent until ``stop`` is set and the controlled shutdown has ended.

        Raises:
            AgentError, ClientError, QuorateError: As ``BrokerAgent.run``.
        """
        from quorate.broker_agent.agent import BrokerAgent
        from quorate.broker_agent.hosting import HostingHandler
        from quorate.broker_agent.log_directory import LogDirectory
        from quorate.broker_agent.settings import AgentSettings
        from quorum.types import draw_directory_id

        with ExitStack() as opened:
            directories = []
            for path in self.data_dirs:
                directory = LogDirectory(path, cluster_id, self.broker_id)
                opened.callback(directory.close)
                directories.append(directory)
            # Every directory has the mark of a clean shutdown, or none counts.
            marks = {each.clean_shutdown_epoch() for each in directories}
            settings = AgentSettings(
                self.broker_id,
                cluster_id,
                draw_directory_id(os.urandom),
                log_dirs=tuple(each.id for each in directories),
                previous_broker_epoch=marks.pop() if len(marks) == 1 else -1,
                **self.options,
            )
            lines = AgentLines(self.session)
            handler = HostingHandler(self.broker_id, directories, lines.show)
            agent = BrokerAgent(calls, settings, handler, source)
            stopping = asyncio.get_running_loop().create_task(_shut_down_after(stop, agent))
            try:
                ended = await agent.run()
            finally:
                stopping.cancel()
            if ended.is_clean:
                for each in directories:
                    each.mark_clean_shutdown(ended.broker_epoch)
            lines.show(
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

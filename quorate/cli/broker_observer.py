"""``quorate broker-agent --observer FILE``: a broker's agent and its observer in one process.

The node is started as `quorate server` does it, with the same configuration, log lines, metrics
and exit codes. The agent is its guest; see ADR 78.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from quorate.broker_agent.observed_log import ObservedLog
from quorate.broker_agent.observer_calls import ObserverCalls
from quorate.cli.connection import client_of
from quorate.cli.exits import CliError, Exit
from quorate.cli.server import run_node
from quorate.replica.log_facts import LogFacts

if TYPE_CHECKING:
    from quorate.cli.agent_run import AgentRun
    from quorate.config.server_config import ServerConfig
    from quorate.server.node import ServerNode


def run_with_observer(run: AgentRun, file: Path) -> int:
    """Run the node of a configuration, and the agent beside it; return the exit code.

    Raises:
        CliError: The node is, or would become, a voter.
        QuorateError: The node could not be started, or the agent has ended by itself.
    """

    async def agent(node: ServerNode, stop: asyncio.Event) -> None:
        replica = node.replica
        if replica.node.is_voter:
            raise CliError(
                f"node {node.node_id} is a voter; a broker that restarts must not take a vote away",
                hint="run it with `quorate server`, and give the agent an observer of its own",
                code=Exit.REFUSED,
            )
        identity, facts = replica.stores.identity, LogFacts(replica)
        own = identity.log_incarnation_id
        async with client_of(run.session, run.servers, log_incarnation=own) as client:
            calls = ObserverCalls(client, own, lambda: facts.log_incarnation.number)
            await run.until(stop, identity.cluster_id, calls, ObservedLog(replica.controller))

    return run_node(file, guest=agent, check=_check)


def _check(config: ServerConfig) -> None:
    if config.quorum.auto_join:
        raise CliError(
            "quorum.auto_join would make the observer of a broker a voter",
            hint="set it to false: a broker that restarts must not take a vote away",
            code=Exit.REFUSED,
        )

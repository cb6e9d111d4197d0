"""What a command says, and how long it waits, when every server is gone after it has sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from quorate.cli import connection, patience
from quorate.cli.exits import CliError, Exit
from quorate.cli.patience import UnreachableError
from quorate.cli.reachability import Obstacle
from quorate.cli.session import Session
from quorate.client import TOPIC, Client
from quorate.services.ports import Outcome, VoterChange
from quorum.v1 import common_pb2
from statemachine.commands import InitProducerId
from tests.support.served_node import FakeNode, cluster, serving

Work = Callable[[Client], Awaitable[Any]]

DISK = bytes(range(16))
PLACE = common_pb2.Endpoint(name="CONTROLLER", host="localhost", port=9093)


async def set_config(client: Client) -> Any:
    return await client.set_config(TOPIC, "orders", "retention.ms", "1")


async def add_voter(client: Client) -> Any:
    return await client.add_voter(4, DISK, [PLACE], timeout_seconds=1.5)


CHANGES: dict[str, Work] = {"write": set_config, "change of voters": add_voter}


class Wire:
    """The only way to a node, which can be cut: connections break, and new ones are refused."""

    def __init__(self, node: FakeNode) -> None:
        """The node neither carries out nor answers a change until the wire is whole again."""
        self.has_taken = asyncio.Event()
        self._far = node.address
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._port = 0
        evaluate = node.take

        def take(command: Any, context: Any, on_answer: Any) -> None:
            if isinstance(command, InitProducerId) or self.is_whole:
                evaluate(command, context, on_answer)
            else:
                self.has_taken.set()

        async def change(_asked: VoterChange) -> Outcome:
            self.has_taken.set()
            return await asyncio.Future()

        self.is_whole = False
        """Whether commands are evaluated."""
        node.take = take  # type: ignore[method-assign]
        node.change_voters = change  # type: ignore[method-assign,assignment]

    async def join(self) -> str:
        """Take connections; returns the address, which stays the same."""
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]
        return f"127.0.0.1:{self._port}"

    async def cut(self) -> None:
        assert self._server is not None
        self.is_whole = True
        self._server.close()
        for each in self._tasks:
            each.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = self._far.split(":")
        there = await asyncio.open_connection(host, int(port))
        for source, target in ((reader, there[1]), (there[0], writer)):
            self._tasks.add(asyncio.create_task(_pump(source, target)))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
    finally:
        writer.transport.abort()


@asynccontextmanager
async def wired() -> AsyncIterator[tuple[Wire, str]]:
    _, (node,) = cluster(1)
    async with serving(node):
        wire = Wire(node)
        node.address = await wire.join()
        try:
            yield wire, node.address
        finally:
            await wire.cut()


class Examined:
    """When the servers are examined; patience is over the first time that none is reached."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.may_begin = asyncio.Event()
        self.is_done = asyncio.Event()
        self._find = patience.obstacles
        monkeypatch.setattr(patience, "obstacles", self._obstacles)
        monkeypatch.setattr(patience, "PATIENCE_S", 0)

    async def _obstacles(self, session: Session, servers: tuple[str, ...]) -> dict[str, Obstacle]:
        await self.may_begin.wait()
        found = await self._find(session, servers)
        self.is_done.set()
        return found


@pytest.fixture
def examined(monkeypatch: pytest.MonkeyPatch) -> Examined:
    return Examined(monkeypatch)


async def asked(address: str, work: Work, *, timeout_s: float = 1.5, limit_s: float = 30) -> Any:
    session = Session(bootstrap=(address,), timeout_s=timeout_s)
    return await connection._ask(session, work, "", limit_s)


def cut_when_taken(change: Work, wire: Wire, examined: Examined) -> Work:
    """The change; all servers die as soon as one of them has it."""

    async def work(client: Client) -> Any:
        task = asyncio.ensure_future(change(client))
        await wire.has_taken.wait()
        await wire.cut()
        examined.may_begin.set()
        return await task

    return work


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_was_sent_is_in_doubt_when_all_servers_are_gone(
    change: str, examined: Examined
) -> None:
    async def scenario() -> None:
        async with wired() as (wire, address):
            with pytest.raises(CliError, match="sent, but the outcome is unknown") as ended:
                await asked(address, cut_when_taken(CHANGES[change], wire, examined))
            assert f"{address}: connection refused" in str(ended.value)
            assert ended.value.hint == "look before repeating: it may have been applied"
            assert ended.value.code is Exit.UNREACHABLE

    asyncio.run(scenario())


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_was_cancelled_after_it_was_sent_is_in_doubt(change: str) -> None:
    """As at the limit of a whole command, which cancels what would have said so itself."""

    async def scenario() -> None:
        async with wired() as (wire, address):

            async def work(client: Client) -> Any:
                task = asyncio.ensure_future(CHANGES[change](client))
                await wire.has_taken.wait()
                task.cancel()
                raise TimeoutError

            with pytest.raises(CliError, match="sent, but the outcome is unknown: there is no"):
                await asked(address, work, timeout_s=30)

    asyncio.run(scenario())


def test_a_server_that_comes_back_answers_a_change_that_was_sent(examined: Examined) -> None:
    """Patience is for servers that nothing was sent to."""

    async def scenario() -> None:
        async with wired() as (wire, address):
            work = cut_when_taken(set_config, wire, examined)
            ends = asyncio.ensure_future(asked(address, work, timeout_s=30))
            await examined.is_done.wait()
            assert await wire.join() == address
            assert (await ends).offset > 0

    asyncio.run(scenario())


def test_a_change_that_was_answered_is_not_in_doubt(examined: Examined) -> None:
    async def scenario() -> None:
        async with wired() as (wire, address):
            wire.is_whole = True

            async def work(client: Client) -> Any:
                await set_config(client)
                await wire.cut()
                examined.may_begin.set()
                return await client.describe_cluster()

            with pytest.raises(UnreachableError):
                await asked(address, work)

    asyncio.run(scenario())


def test_a_dry_run_leaves_nothing_in_doubt(examined: Examined) -> None:
    async def scenario() -> None:
        async with wired() as (wire, address):

            async def dry_run(client: Client) -> Any:
                return await client.update_features([], dry_run=True)

            with pytest.raises(UnreachableError):
                await asked(address, cut_when_taken(dry_run, wire, examined))

    asyncio.run(scenario())

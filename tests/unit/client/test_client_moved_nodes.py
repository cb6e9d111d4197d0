"""Nodes with another address than before, and addresses that answer nothing: neither is waited for.

gRPC waits two seconds for a connection to one address.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import grpc
import pytest

from quorate.client import TOPIC, BlockingClient, Client, channels
from quorate.client.channels import Nodes
from quorate.client.limits import CLIENT_OPTIONS, RESOLUTION_PAUSE_MS
from tests.support.moving_node import name_server, silent_address
from tests.support.served_node import FakeNode, cluster, serving, start, stop

SECONDS_MAX = 1.5
"""Longest wait: less than gRPC would wait, and enough for a busy machine."""
PAUSE_S = RESOLUTION_PAUSE_MS / 1000 + 0.1
NAME = "node.test"
OLD, NEW = "127.0.0.2", "127.0.0.3"


async def write(client: Client) -> None:
    await client.set_config(TOPIC, "t", "retention.ms", "1")


@asynccontextmanager
async def serving_at(node: FakeNode, address: str) -> AsyncIterator[int]:
    """Serve a node at an address; yields the port."""
    kept: list[Any] = []
    server = await start(node, kept, address=address)
    try:
        yield int(node.address.rpartition(":")[2])
    finally:
        await stop(server)
        kept[0].close()


def test_a_node_that_comes_back_with_another_address_is_found_at_once() -> None:
    async def scenario() -> None:
        _, (node,) = cluster(1)
        async with name_server() as names, AsyncExitStack() as open_client:
            names.addresses[NAME] = OLD
            async with serving_at(node, f"{OLD}:0") as port:
                client = Client([names.target(NAME, port)])
                await open_client.enter_async_context(client)
                await write(client)
            with silent_address(OLD, port):
                # gRPC looks the name up when the connection breaks: too early.
                await asyncio.sleep(PAUSE_S)
                names.addresses[NAME] = NEW
                async with serving_at(node, f"{NEW}:{port}"), asyncio.timeout(SECONDS_MAX):
                    await write(client)

    asyncio.run(scenario())


CALLS: dict[str, Callable[[Client], Any]] = {
    "read": lambda client: client.list_topics(),
    "unary": lambda client: client.describe_cluster(),
    "watch": lambda client: anext(aiter(client.watch())),
    "write": write,
}


@pytest.mark.parametrize("call", CALLS)
def test_an_address_that_answers_nothing_is_not_waited_for(call: str) -> None:
    async def scenario() -> None:
        _, (node,) = cluster(1)
        with silent_address() as silent:
            async with serving(node), Client([silent, node.address]) as client:
                async with asyncio.timeout(SECONDS_MAX):
                    await CALLS[call](client)

    asyncio.run(scenario())


def test_nor_by_a_program_without_an_event_loop() -> None:
    def program(addresses: list[str]) -> None:
        with BlockingClient(addresses, timeout_seconds=SECONDS_MAX) as client:
            client.list_topics()
            client.set_config(TOPIC, "t", "retention.ms", "1")

    async def scenario() -> None:
        _, (node,) = cluster(1)
        with silent_address() as silent:
            async with serving(node):
                await asyncio.to_thread(program, [silent, node.address])

    asyncio.run(scenario())


def test_a_node_keeps_its_connection() -> None:
    """A channel is replaced only when its connection is lost; then by the next call."""

    async def scenario() -> None:
        _, (node,) = cluster(1)
        async with serving(node):
            nodes = Nodes([node.address])
            first = nodes.node(node.address)
            assert nodes.node(node.address) is first, "its first call has not begun"
            await first.channel.channel_ready()
            await asyncio.sleep(PAUSE_S)
            assert nodes.node(node.address) is first
        while nodes.is_connected(node.address):
            await asyncio.sleep(0.01)
        assert nodes.node(node.address) is not first
        await nodes.close()

    asyncio.run(scenario())


class DeadNode:
    """An address where every connection is closed at once; counts the attempts."""

    def __init__(self) -> None:
        self.attempts = 0
        self.address = ""
        self._is_called = asyncio.Condition()

    async def __aenter__(self) -> DeadNode:
        self._server = await asyncio.start_server(self._refuse, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._server.close()

    async def is_called(self, times: int) -> None:
        """Wait for so many further attempts."""
        last = self.attempts + times
        async with self._is_called:
            await self._is_called.wait_for(lambda: self.attempts >= last)

    async def _refuse(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()
        async with self._is_called:
            self.attempts += 1
            self._is_called.notify_all()


def test_an_idle_client_does_not_call_on_a_dead_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """gRPC alone would repeat its attempts four times a second, for ever.

    A channel that nobody gives up is the clock: it is as slow as the machine.
    """
    monkeypatch.setattr(channels, "REST_SECONDS", 0.5)

    async def scenario() -> None:
        _, (node,) = cluster(1)
        async with (
            DeadNode() as dead,
            DeadNode() as clock,
            serving(node),
            Client([dead.address, node.address]) as client,
            grpc.aio.insecure_channel(clock.address, options=CLIENT_OPTIONS) as ticking,
        ):
            ticking.get_state(try_to_connect=True)
            called = asyncio.ensure_future(dead.is_called(2))
            await write(client)
            await called
            while client._nodes._nodes[dead.address] is not None:
                await clock.is_called(1)
            # An attempt may have been under way.
            await clock.is_called(2)
            before = dead.attempts
            await clock.is_called(4)
            assert dead.attempts == before
            # Nor is it forgotten.
            with pytest.raises(grpc.RpcError):
                await client._nodes.node(dead.address).metadata.ListTopics(
                    None, timeout=SECONDS_MAX
                )

    async def bounded() -> None:
        async with asyncio.timeout(60):
            await scenario()

    asyncio.run(bounded())

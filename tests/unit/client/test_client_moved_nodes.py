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
from quorate.client.limits import RESOLUTION_PAUSE_MS
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


def test_an_idle_client_does_not_call_on_a_dead_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """gRPC alone would repeat its attempts four times a second, for ever."""
    monkeypatch.setattr(channels, "REST_SECONDS", 0.5)
    attempts = 0

    def refuse(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal attempts
        attempts += 1
        writer.close()

    async def scenario() -> None:
        _, (node,) = cluster(1)
        dead = await asyncio.start_server(refuse, "127.0.0.1", 0)
        address = f"127.0.0.1:{dead.sockets[0].getsockname()[1]}"
        async with dead, serving(node), Client([address, node.address]) as client:
            await write(client)
            await asyncio.sleep(2 * channels.REST_SECONDS + PAUSE_S)
            before = attempts
            assert before > 1
            await asyncio.sleep(1.0)
            assert attempts == before
            # Nor is it forgotten.
            with pytest.raises(grpc.RpcError):
                await client._nodes.node(address).metadata.ListTopics(None, timeout=SECONDS_MAX)

    asyncio.run(scenario())

"""Ports that serve no clients among a client's addresses: a peer listener, or no node at all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import pytest

from quorate.client import TOPIC, Client, NotServedError
from tests.support.served_node import cluster, serving

SECONDS_MAX = 5.0
"""Far below the client's timeout."""


@asynccontextmanager
async def other_port() -> AsyncIterator[str]:
    """A gRPC server without the services of clients."""
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


@pytest.mark.parametrize("call", ["write", "read", "watch", "unary"])
def test_a_port_that_serves_no_clients_is_named_at_once(call: str) -> None:
    async def scenario() -> None:
        async with other_port() as address, Client([address], timeout_seconds=60) as client:
            calls = {
                "write": lambda: client.set_config(TOPIC, "t", "retention.ms", "1"),
                "read": client.list_topics,
                "watch": lambda: anext(aiter(client.watch())),
                "unary": client.describe_cluster,
            }
            async with asyncio.timeout(SECONDS_MAX):
                with pytest.raises(NotServedError) as caught:
                    await calls[call]()
            assert caught.value.code_name == "UNSUPPORTED_VERSION"
            assert caught.value.text.startswith(f"{address} does not serve this call: ")

    asyncio.run(scenario())


@pytest.mark.parametrize("order", [1, -1])
def test_the_cluster_is_found_behind_a_port_that_serves_no_clients(order: int) -> None:
    async def scenario() -> None:
        _, nodes = cluster(1)
        async with serving(*nodes), other_port() as other:
            addresses = [other, nodes[0].address][::order]
            async with asyncio.timeout(SECONDS_MAX):
                async with Client(addresses, timeout_seconds=60) as client:
                    await client.list_topics()
                    assert (await client.describe_cluster()).cluster_id == nodes[0].cluster_id
                async with Client(addresses, timeout_seconds=60) as client:
                    await client.set_config(TOPIC, "t", "retention.ms", "1")
                async with Client(addresses, timeout_seconds=60) as client:
                    await anext(aiter(client.watch()))

    asyncio.run(scenario())

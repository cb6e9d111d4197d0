"""Queries of one client over read streams: shared, moved to another node, and ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from quorate.client import LINEARIZABLE, TOPIC, Client, RefusedError, UnavailableError
from quorate.client.limits import READ_MESSAGE_BYTES_MAX
from tests.support.served_node import FakeNode, cluster, serving, stop


def with_client(
    scenario: Callable[..., Awaitable[None]], *, nodes: int = 1, leader: int = 1
) -> None:
    """Run ``scenario(nodes, servers, client)``; the client knows every node."""

    async def run() -> None:
        _, made = cluster(nodes, leader=leader)
        async with serving(*made) as servers:
            async with Client([node.address for node in made], timeout_seconds=20) as client:
                await scenario(made, servers, client)

    asyncio.run(run())


def test_readers_at_the_same_time_share_rounds() -> None:
    """Goal: far fewer rounds than reads. Method: 200 at once, counted where they are confirmed."""

    async def scenario(nodes: list[FakeNode], _servers: Any, client: Client) -> None:
        rounds = 0
        confirm = nodes[0].confirm_read

        def counted(on_outcome: Callable[[int | None], None], reads: int = 1) -> None:
            nonlocal rounds
            rounds += 1
            confirm(on_outcome, reads)

        nodes[0].confirm_read = counted  # type: ignore[method-assign]
        await asyncio.gather(*(client.list_topics(read=LINEARIZABLE) for _ in range(200)))
        assert 1 <= rounds <= 4

    with_client(scenario)


def test_a_node_that_does_not_lead_sends_the_client_to_the_leader() -> None:
    async def scenario(nodes: list[FakeNode], _servers: Any, client: Client) -> None:
        nodes[0].confirm_read = lambda on_outcome, _reads=1: on_outcome(None)  # type: ignore[method-assign]
        answer = await client.list_topics(read=LINEARIZABLE)
        assert answer.position.node_id == 2
        assert client.leader == nodes[1].address

    with_client(scenario, nodes=2, leader=2)


def test_queries_of_a_broken_stream_are_asked_of_another_node() -> None:
    """Goal: none is lost. Method: the node stops while a hundred wait for it."""

    async def scenario(nodes: list[FakeNode], servers: Any, client: Client) -> None:
        nodes[0].auto_confirm = False
        reads = [asyncio.create_task(client.list_topics(read=LINEARIZABLE)) for _ in range(100)]
        await nodes[0].has_reads(1)
        await stop(servers[1])
        answers = await asyncio.gather(*reads)
        assert {answer.position.node_id for answer in answers} == {2}

    with_client(scenario, nodes=2)


def test_a_large_query_is_a_call_of_its_own() -> None:
    async def scenario(nodes: list[FakeNode], _servers: Any, client: Client) -> None:
        names = [f"{number:0100}" for number in range(READ_MESSAGE_BYTES_MAX // 100)]
        assert len((await client.describe_topics(names)).topics) == len(names)
        assert client._caller._streams._streams == {}

    with_client(scenario)


def test_a_refusal_is_raised_as_it_is_by_a_call() -> None:
    async def scenario(_nodes: list[FakeNode], _servers: Any, client: Client) -> None:
        with pytest.raises(RefusedError, match=r"MESSAGE_TOO_LARGE.*more than 10000"):
            await client.describe_configs([(TOPIC, "")] * 10_001)

    with_client(scenario)


def test_closing_ends_what_waits() -> None:
    async def scenario(nodes: list[FakeNode], _servers: Any, client: Client) -> None:
        nodes[0].auto_confirm = False
        read = asyncio.create_task(client.list_topics(read=LINEARIZABLE))
        await nodes[0].has_reads(1)
        await client.close()
        with pytest.raises(UnavailableError):
            await read

    with_client(scenario)


def test_a_reader_that_gives_up_is_forgotten() -> None:
    async def scenario(nodes: list[FakeNode], _servers: Any, client: Client) -> None:
        nodes[0].auto_confirm = False
        read = asyncio.create_task(client.list_topics(read=LINEARIZABLE))
        await nodes[0].has_reads(1)
        read.cancel()
        await asyncio.wait({read})
        (stream,) = client._caller._streams._streams.values()
        assert stream._open == {}
        nodes[0].reads.pop()(nodes[0].log.end)
        assert (await client.list_topics()).position.node_id == 1

    with_client(scenario)

"""What a client that is closed leaves: ended writes, nothing in its event loop, nothing begun."""

from __future__ import annotations

import asyncio

import pytest

from quorate.client import (
    TOPIC,
    Client,
    ClientError,
    OutcomeUnknownError,
    UnavailableError,
)
from quorate.client import writer as writing
from quorate.client.search import LeaderSearch
from quorate.client.stream import END_SECONDS_MAX
from quorate.client.writer import Writer
from quorum.errors import ErrorCode
from tests.support.served_node import cluster, serving


def client_tasks() -> list[str]:
    """What runs for clients in this loop, gRPC's side of their calls included."""
    names = [task.get_coro().__qualname__ for task in asyncio.all_tasks()]
    ours = ("LiveStream.", "Writer.", "LeaderSearch.", "_AioCall.")
    return [name for name in names if name.startswith(ours)]


def client_of(nodes, **options) -> Client:
    return Client([node.address for node in nodes], client_id="test", **options)


def test_closing_ends_what_is_on_its_way():
    async def scenario():
        _, nodes = cluster(1)
        async with serving(*nodes):
            client = client_of(nodes)
            await client.set_config(TOPIC, "warm", "retention.ms", "0")
            nodes[0].held = []
            write = asyncio.ensure_future(client.set_config(TOPIC, "t", "retention.ms", "1"))
            await nodes[0].holds(1)
            await client.close()
            with pytest.raises(OutcomeUnknownError):
                await write
            with pytest.raises(ClientError, match="closed"):
                await client.set_config(TOPIC, "t", "retention.ms", "1")

    asyncio.run(scenario())


def test_closing_leaves_nothing_behind_in_its_event_loop():
    """What gRPC completes after the loop is closed fails in the loop that runs next."""

    async def scenario():
        _, nodes = cluster(1)
        async with serving(*nodes):
            async with client_of(nodes) as client:
                await client.set_config(TOPIC, "t", "retention.ms", "1")
                assert client_tasks() != []
            assert client_tasks() == []

    asyncio.run(scenario())


def test_a_pause_that_outlives_its_client_begins_nothing(monkeypatch):
    """Goal: a closed client does nothing. Method: close it in the pause after a refusal, and run
    the loop until the pause is over.
    """
    searches = []
    refusal = Writer._on_init_refused

    def counted(*args, **options):
        searches.append(args)
        return LeaderSearch(*args, **options)

    async def scenario():
        refused = asyncio.Event()

        def noted(writer, answer_class, answer):
            refusal(writer, answer_class, answer)
            refused.set()

        monkeypatch.setattr(Writer, "_on_init_refused", noted)
        _, nodes = cluster(1)
        nodes[0].refuse = ErrorCode.QUEUE_FULL
        async with serving(*nodes):
            client = client_of(nodes)
            write = asyncio.ensure_future(client.set_config(TOPIC, "t", "retention.ms", "1"))
            await refused.wait()
            # A timer of the same loop, set later and for as long, runs after that of the pause.
            over = asyncio.Event()
            asyncio.get_running_loop().call_later(writing.REFUSED_PAUSE_SECONDS, over.set)
            await client.close()
            assert isinstance(write.exception(), UnavailableError)
            await over.wait()
            assert client_tasks() == []

    monkeypatch.setattr(writing, "LeaderSearch", counted)
    monkeypatch.setattr(writing, "REFUSED_PAUSE_SECONDS", 0.1)
    asyncio.run(scenario())
    assert len(searches) == 1


def test_closing_does_not_wait_for_a_node_that_keeps_the_stream_open():
    async def scenario():
        _, nodes = cluster(1)
        async with serving(*nodes):
            client = client_of(nodes)
            await client.set_config(TOPIC, "warm", "retention.ms", "0")
            nodes[0].held = []
            write = asyncio.ensure_future(client.set_config(TOPIC, "t", "retention.ms", "1"))
            await nodes[0].holds(1)
            async with asyncio.timeout(20 * END_SECONDS_MAX):
                await client.close()
            assert isinstance(write.exception(), OutcomeUnknownError)
            assert client_tasks() == []

    asyncio.run(scenario())

"""The client for programs without an event loop: every method, threads, errors and its end."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from quorate.client import TOPIC, BlockingClient, Client, RefusedError, ResetPolicy, at_least
from quorate.client.results.metadata import ChangeBatch
from quorum.errors import ErrorCode
from quorum.log_position import LogPosition
from tests.support.served_node import FakeNode, cluster, serving

OF_A_LOOP = {"find_stream", "close"}
"""Coroutines without a blocking form: one returns a stream of the loop, one has its own."""


def beside_a_node(program: Callable[[FakeNode], None]) -> None:
    """Serve one node on this thread's loop while ``program`` runs in another thread."""

    async def scenario() -> None:
        _, (node,) = cluster(1)
        async with serving(node):
            await asyncio.to_thread(program, node)

    asyncio.run(scenario())


def test_every_coroutine_of_the_client_has_a_blocking_form() -> None:
    coroutines = {
        name
        for name, member in inspect.getmembers(Client, inspect.iscoroutinefunction)
        if not name.startswith("_")
    }
    assert coroutines - OF_A_LOOP == {
        name
        for name in coroutines
        if inspect.unwrap(getattr(BlockingClient, name, len)) is getattr(Client, name)
    }


def test_a_program_writes_queries_watches_and_consumes() -> None:
    def program(node: FakeNode) -> None:
        with BlockingClient([node.address], client_id="script") as client:
            applied = client.set_config(TOPIC, "orders", "retention.ms", "1000")
            assert applied.offset > 0
            wanted = [(TOPIC, "orders")]
            (found,) = client.describe_configs(wanted, read=at_least(applied.offset)).resources
            assert found.resource.name == "orders"
            events = client.watch()
            next(events)
            assert events.position == LogPosition(applied.offset, 1)
            events.close()
            consumer = client.consumer(reset=ResetPolicy.EARLIEST)
            records = consumer.poll()
            assert records[-1].offset == applied.offset - 1
            consumer.seek(0)
            assert consumer.poll()[0].offset == 0
            assert (consumer.state, consumer.high_watermark) == (None, applied.offset)
            assert events.position is not None
            consumer.seek_to(events.position)
            client.set_config(TOPIC, "orders", "retention.ms", "2000")
            assert [r.offset for r in consumer.poll()] == [applied.offset]
            (change,) = itertools.islice(client.watch(position=events.position), 1)
            assert isinstance(change, ChangeBatch)
            assert change.base_offset == applied.offset
        assert not [each for each in threading.enumerate() if each.name == "quorate-client"]

    beside_a_node(program)


def test_threads_share_a_client() -> None:
    def program(node: FakeNode) -> None:
        with BlockingClient([node.address]) as client, ThreadPoolExecutor(8) as threads:
            offsets = threads.map(
                lambda number: client.set_config(TOPIC, "t", "retention.ms", str(number)).offset,
                range(40),
            )
            assert len(set(offsets)) == 40

    beside_a_node(program)


def test_errors_are_the_clients_own() -> None:
    def program(node: FakeNode) -> None:
        node.refuse = ErrorCode.POLICY_VIOLATION
        with BlockingClient([node.address]) as client, pytest.raises(RefusedError):
            client.set_config(TOPIC, "t", "retention.ms", "1")

    beside_a_node(program)


def test_a_closed_client_says_so_and_closes_once() -> None:
    def program(node: FakeNode) -> None:
        client = BlockingClient([node.address])
        client.close()
        client.close()
        with pytest.raises(RuntimeError, match="closed"):
            client.list_topics()

    beside_a_node(program)


def test_a_client_that_cannot_be_made_leaves_no_thread() -> None:
    with pytest.raises(ValueError, match="limited"):
        BlockingClient(["localhost:1"], reason="x" * 10_000)
    assert not [each for each in threading.enumerate() if each.name == "quorate-client"]

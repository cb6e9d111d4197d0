"""A busy leader is stopped: its clients see only a short delay.

Watches, write streams, long polls and linearizable reads are open on the leader when it gets
SIGTERM. Its log and the clients' logs have no traceback. Every watcher resumes at another node and
gets each change once and in order.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path

import pytest

from quorate.client.client import Client
from quorate.client.log_consumer import LogConsumer, ResetPolicy
from quorate.client.queries import LINEARIZABLE
from quorate.client.results.metadata import ChangeBatch
from quorate.demo.local_cluster import LocalNode
from quorum.log_position import LogPosition
from quorum.v1 import commands_pb2 as wire
from tests.integration.processes import Processes, running

pytestmark = pytest.mark.integration

WATCHERS = 50
WRITERS = 8
READERS = 8
POLLERS = 4
IDLE_STREAMS = 4
CHANGES_BEFORE = 20
"""Changes that every watcher has seen before the stop, and again after it."""
PATIENCE_SECONDS = 60.0
CONFIG = "log.retention.ms"
BROKER = wire.CONFIG_RESOURCE_TYPE_BROKER
NEVER_LOGGED = ("Traceback", "not handled", "never retrieved", "was destroyed", " ERROR ")


class Crowd:
    """Clients of one cluster that begin with the same node. Owned by one event loop."""

    def __init__(self, cluster: Processes, first: LocalNode, clients: AsyncExitStack) -> None:
        self._addresses = sorted(cluster.addresses, key=lambda each: each != first.address)
        self._clients = clients
        self.seen: list[list[ChangeBatch]] = [[] for _ in range(WATCHERS)]
        self.acknowledged: dict[int, int] = {}
        """End offset of every acknowledged write, by its value."""
        self.reads = 0
        self.polled: list[list[int]] = [[] for _ in range(POLLERS)]
        self.is_over = False

    async def _client(self) -> Client:
        client = Client(self._addresses, client_id="crowd", timeout_seconds=PATIENCE_SECONDS)
        return await self._clients.enter_async_context(client)

    def tasks(self) -> list[asyncio.Task[None]]:
        """Run all clients. Only writers and readers end by themselves after the stop."""
        work: list[Awaitable[None]] = [
            *(self._watch(into) for into in self.seen),
            *(self._write(number) for number in range(WRITERS)),
            *(self._read() for _ in range(READERS)),
            *(self._poll(into) for into in self.polled),
        ]
        return [asyncio.ensure_future(each) for each in work]

    async def _watch(self, into: list[ChangeBatch]) -> None:
        watch = (await self._client()).watch(from_offset=0, from_epoch=0, may_restart=False)
        async for event in watch:
            assert isinstance(event, ChangeBatch)
            into.append(event)

    async def _write(self, number: int) -> None:
        client = await self._client()
        value = number
        while not self.is_over:
            value += WRITERS
            answer = await client.set_config(BROKER, "", CONFIG, str(value))
            self.acknowledged[value] = answer.offset

    async def _read(self) -> None:
        client = await self._client()
        while not self.is_over:
            await client.describe_configs([(BROKER, "")], read=LINEARIZABLE)
            self.reads += 1

    async def _poll(self, into: list[int]) -> None:
        consumer: LogConsumer = (await self._client()).consumer(
            reset=ResetPolicy.NONE, position=LogPosition(0)
        )
        while True:
            into += [record.offset for record in await consumer.poll(max_wait_ms=20_000)]

    async def idle_streams(self) -> None:
        """Write streams on which nothing is sent."""
        for _ in range(IDLE_STREAMS):
            stream = (await (await self._client()).find_stream()).call
            self._clients.callback(stream.cancel)


async def _until(tasks: list[asyncio.Task[None]], find: Callable[[], bool]) -> None:
    """Wait for something to be so; a worker that fails fails the test at once."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not find():
            for task in tasks:
                if task.done():
                    task.result()
            await asyncio.sleep(0.02)


def _end_of(batches: list[ChangeBatch]) -> int:
    return batches[-1].end_offset if batches else 0


async def _stop_under_the_crowd(cluster: Processes, leader: LocalNode, crowd: Crowd) -> int:
    tasks = crowd.tasks()
    try:
        await crowd.idle_streams()
        await _until(
            tasks,
            lambda: (
                crowd.reads >= READERS
                and all(map(len, crowd.polled))
                and all(len(batches) > CHANGES_BEFORE for batches in crowd.seen)
            ),
        )
        status = await asyncio.to_thread(cluster.stop, leader)
        end = max(map(_end_of, crowd.seen))
        reads = crowd.reads
        await _until(
            tasks,
            lambda: (
                crowd.reads >= reads + READERS
                and all(_end_of(batches) > end + CHANGES_BEFORE for batches in crowd.seen)
            ),
        )
        crowd.is_over = True
        await asyncio.gather(*tasks[WATCHERS : WATCHERS + WRITERS + READERS])
        last = max(crowd.acknowledged.values())
        await _until(
            tasks,
            lambda: (
                all(_end_of(batches) >= last for batches in crowd.seen)
                and all(offsets[-1] >= last - 1 for offsets in crowd.polled)
            ),
        )
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return status


def test_a_leader_stops_under_a_crowd(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def run(cluster: Processes, leader: LocalNode) -> tuple[int, Crowd]:
        async with AsyncExitStack() as clients:
            crowd = Crowd(cluster, leader, clients)
            return await _stop_under_the_crowd(cluster, leader, crowd), crowd

    with caplog.at_level(logging.WARNING), running(tmp_path) as cluster:
        leader = cluster.leader()
        status, crowd = asyncio.run(run(cluster, leader))
        logged = leader.log_path.read_text()
    assert status == 0, logged
    for words in NEVER_LOGGED:
        assert words not in logged
        assert words not in caplog.text
    for batches in crowd.seen:
        assert batches[0].base_offset == 0
        for before, after in pairwise(batches):
            assert after.base_offset == before.end_offset
    data = [
        offset
        for batch in max(crowd.seen, key=len)
        for offset in range(batch.base_offset, batch.end_offset)
        if not batch.is_control
    ]
    for offsets in crowd.polled:
        assert offsets == data[: len(offsets)]
    by_end = {batch.end_offset: batch for batch in max(crowd.seen, key=len)}
    for value, end_offset in crowd.acknowledged.items():
        assert any(str(value).encode() in record for record in by_end[end_offset].records)

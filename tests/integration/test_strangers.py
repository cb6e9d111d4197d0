"""The leader is killed and something else takes its port: clients find the new leader in time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Any

import pytest

from quorate.client.client import Client
from quorate.client.log_consumer import ResetPolicy
from quorate.client.queries import LINEARIZABLE, LOCAL
from quorum.v1 import commands_pb2 as wire
from tests.integration.processes import Processes, running
from tests.integration.run_queue import RunQueue
from tests.integration.strangers import STRANGERS
from tests.integration.traffic import CONFIG, config_value, wait_equal_images

pytestmark = pytest.mark.integration

TIMEOUT_SECONDS = 90.0
SECONDS_MAX = 8.0
"""Within this every call is answered: one node's time-out and an election, and some to spare. What
the processes waited for a processor that others used is not counted."""
RESOURCE = (wire.CONFIG_RESOURCE_TYPE_BROKER, "")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    with running(tmp_path_factory.mktemp("home")) as cluster:
        yield cluster


def client_of(cluster: Processes) -> Client:
    return Client(cluster.addresses, timeout_seconds=TIMEOUT_SECONDS, cluster_id=cluster.cluster_id)


@pytest.fixture
def queue(cluster: Processes) -> Iterator[RunQueue]:
    pids = [node.process.pid for node in cluster.voters if node.process is not None]
    with RunQueue(lambda: pids) as queue:
        yield queue


async def in_time(queue: RunQueue, what: str, answer: Awaitable[Any]) -> Any:
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with asyncio.timeout(TIMEOUT_SECONDS):
        found = await answer
    ended = loop.time()
    queue.sample()
    seconds = ended - began - queue.waited(began, ended)
    assert seconds <= SECONDS_MAX, f"{what}: no answer in {SECONDS_MAX} s but in {seconds:.1f} s"
    return found


async def use(queue: RunQueue, client: Client, value: str) -> None:
    """One of everything a client does, each in time, none answered by a stranger."""
    await in_time(queue, "a write", client.set_config(*RESOURCE, CONFIG, value))
    for read in (LINEARIZABLE, LOCAL, LOCAL, LOCAL):
        answer = await in_time(queue, "a query", client.describe_configs([RESOURCE], read=read))
        found = {entry.name: entry.value for entry in answer.resources[0].entries}
        if read is LINEARIZABLE:
            assert found[CONFIG] == value
        else:
            # Whichever node answers, it may be some milliseconds behind.
            assert set(found) <= {CONFIG}
    quorum = await in_time(queue, "the quorum", client.describe_quorum())
    assert {voter.replica_id for voter in quorum.voters} == {1, 2, 3}
    consumer = client.consumer(reset=ResetPolicy.EARLIEST)
    first = await in_time(queue, "a poll", consumer.poll())
    second = await in_time(queue, "a poll", consumer.poll())
    read = [record.offset for record in (*first, *second)]
    assert first
    assert read == sorted(set(read)), "an answer of somebody else's log"
    watch = aiter(client.watch())
    assert await in_time(queue, "a watch", anext(watch)) is not None
    await watch.aclose()


@pytest.mark.long
@pytest.mark.parametrize("stranger", STRANGERS)
def test_a_stranger_on_the_dead_leaders_port(
    cluster: Processes, queue: RunQueue, tmp_path: Path, stranger: Any
) -> None:
    leader = cluster.leader()

    async def run() -> None:
        async with client_of(cluster) as client:
            await use(queue, client, "1000")
            cluster.kill(leader)
            with stranger(leader.port, tmp_path):
                await use(queue, client, "2000")
                async with client_of(cluster) as newcomer:
                    await use(queue, newcomer, "3000")

    asyncio.run(run())
    cluster.start_all()
    wait_equal_images(cluster, cluster.voters)
    assert config_value(cluster) == "3000"


def test_a_paused_leader_does_not_delay_other_clients(cluster: Processes, queue: RunQueue) -> None:
    """SIGSTOP: its port still accepts connections, its streams stay open and silent."""
    leader = cluster.leader()

    async def run() -> None:
        async with client_of(cluster) as client:
            await use(queue, client, "4000")
            cluster.freeze(leader)
            try:
                await use(queue, client, "5000")
            finally:
                cluster.thaw(leader)
            await use(queue, client, "6000")

    asyncio.run(run())
    cluster.wait_ready(cluster.voters)
    wait_equal_images(cluster, cluster.voters)
    assert config_value(cluster) == "6000"

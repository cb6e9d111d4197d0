"""A leader that is stopped, replaced and continued: it serves no stale linearizable read.

Reads are put into its sockets while it is stopped, so that it finds them when it wakes up and
still believes that it leads; more follow at once.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import grpc
import pytest

from quorate.client import BROKER, Client
from quorum.v1 import metadata_pb2, metadata_pb2_grpc
from tests.integration.processes import Processes, running

pytestmark = pytest.mark.integration

LEVEL = metadata_pb2.ReadOptions(level=metadata_pb2.READ_LEVEL_LINEARIZABLE)
LOCAL = metadata_pb2.ReadOptions(level=metadata_pb2.READ_LEVEL_LOCAL)
KEY = "log.retention.ms"
BEFORE, AFTER = "1000", "2000"
SETTINGS = {"quorum.fetch_timeout_ms": 4_000}
"""Check quorum resigns after 1.5 times this: long after the others have elected a successor."""
BUFFERED = 50
AFTERWARDS = 200


async def ask(stub: Any, read: metadata_pb2.ReadOptions, *, timeout: float = 20.0) -> Any:
    """The answer, or None where it was refused."""
    try:
        return await stub.DescribeConfigs(
            metadata_pb2.DescribeConfigsRequest(
                read=read, resources=[metadata_pb2.ConfigResource(type=BROKER, name="")]
            ),
            timeout=timeout,
        )
    except grpc.aio.AioRpcError:
        return None


def has(answer: Any, value: str) -> bool:
    return any(entry.value == value for entry in answer.resources[0].entries)


def test_a_paused_and_resumed_leader_serves_no_stale_read(tmp_path: Path) -> None:
    """Goal: refuse or show the write of the new leadership term. Method: SIGSTOP, write elsewhere,
    SIGCONT.

    The ages that local answers claim are held to account by the same run: an answer without
    the write must be older than the write's acknowledgement.
    """
    with running(tmp_path, settings=SETTINGS) as cluster:
        served = asyncio.run(_pause_and_resume(cluster))
        assert served, "nothing was answered, so nothing could have been stale"
        assert [answer for answer in served if not has(answer, AFTER)] == []


async def _pause_and_resume(cluster: Processes) -> list[Any]:
    """What linearizable reads at the former leader were answered, after it was resumed."""
    old = cluster.leader()
    others = [node for node in cluster.voters if node.id != old.id]
    async with Client(cluster.addresses, timeout_seconds=30) as client:
        await client.set_config(BROKER, "", KEY, BEFORE)
    async with grpc.aio.insecure_channel(old.address) as channel:
        stub = metadata_pb2_grpc.MetadataServiceStub(channel)
        before = await ask(stub, LEVEL)
        assert has(before, BEFORE)
        cluster.freeze(old)
        buffered = [asyncio.create_task(ask(stub, LEVEL)) for _ in range(BUFFERED)]
        local = [asyncio.create_task(ask(stub, LOCAL)) for _ in range(BUFFERED)]
        async with Client([node.address for node in others], timeout_seconds=30) as client:
            await client.set_config(BROKER, "", KEY, AFTER)
            acknowledged = time.monotonic()
        await _read_at_every(others)
        assert not any(task.done() for task in buffered)
        thawed = time.monotonic()
        cluster.thaw(old)
        answers = await asyncio.gather(*buffered)
        answers += [await ask(stub, LEVEL) for _ in range(AFTERWARDS)]
        served = [answer for answer in answers if answer is not None]
        # None of them is of the leadership term that it believed in when it woke up.
        epochs = [answer.position.epoch for answer in served]
        assert min(epochs, default=0) > before.position.epoch
        # It follows by now, and answers by asking the new leader.
        assert has(await ask(stub, LEVEL), AFTER)
        stale = await asyncio.gather(*local)
        assert any(stale), "no local read was answered, so no age was evaluated"
        for answer in stale:
            if answer is not None and not has(answer, AFTER):
                assert answer.position.age_ms >= (thawed - acknowledged) * 1000 - 1
    return served


async def _read_at_every(nodes: list[Any]) -> None:
    """The leader of the new leadership term and its follower show the write."""
    for node in nodes:
        async with grpc.aio.insecure_channel(node.address) as channel:
            answer = await ask(metadata_pb2_grpc.MetadataServiceStub(channel), LEVEL)
            assert has(answer, AFTER)
            assert answer.position.node_id == node.id

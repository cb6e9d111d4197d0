"""Linearizable and local reads of a three-node Quorate, from the leader and from a follower.

One read is DescribeConfigs of one topic, in a closed loop of concurrent readers: over the read
stream of one client, as in the client library, and as a unary call each, as other clients may do.
``floors`` has the rate of gRPC itself with the same number of callers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias

import grpc

from bench.closed_loop import percentile, topic_name
from bench.loop import loop_factory
from quorate.client.client import Client
from quorate.client.queries import LINEARIZABLE, LOCAL
from quorate.client.results import DescribeConfigsResponse
from quorate.client.writes import TOPIC
from quorate.demo.local_cluster import LocalCluster
from quorum.v1 import metadata_pb2, metadata_pb2_grpc

READERS = 64
_Read: TypeAlias = Callable[[str, str], Awaitable[DescribeConfigsResponse]]
"""Reads one topic's configuration at a given level."""
_LEVELS = {"linearizable": LINEARIZABLE, "local": LOCAL}


@dataclass(frozen=True, slots=True)
class ReadRate:
    """One measurement. ``ages_ms_max`` is the largest age in a response."""

    node: str
    level: str
    by: str
    """``stream`` or ``calls``."""
    per_second: float
    p50_ms: float
    p99_ms: float
    ages_ms_max: int


@asynccontextmanager
async def _by_stream(address: str) -> AsyncIterator[_Read]:
    async with Client([address], timeout_seconds=30) as client:

        async def read(topic: str, level: str) -> DescribeConfigsResponse:
            return await client.describe_configs([(TOPIC, topic)], read=_LEVELS[level])

        yield read


@asynccontextmanager
async def _by_calls(address: str) -> AsyncIterator[_Read]:
    async with grpc.aio.insecure_channel(address) as channel:
        stub = metadata_pb2_grpc.MetadataServiceStub(channel)  # type: ignore[no-untyped-call]  # generated

        async def read(topic: str, level: str) -> DescribeConfigsResponse:
            request = metadata_pb2.DescribeConfigsRequest(
                read=_LEVELS[level],
                resources=[metadata_pb2.ConfigResource(type=TOPIC, name=topic)],
            )
            return DescribeConfigsResponse.of(await stub.DescribeConfigs(request, timeout=30))

        yield read


_WAYS = {"stream": _by_stream, "calls": _by_calls}


async def _measure(
    address: str,
    node: str,
    level: str,
    by: str,
    *,
    readers: int,
    seconds: float,
    warm_up_seconds: float,
) -> ReadRate:
    latencies: list[float] = []
    oldest = 0
    clock = time.perf_counter
    measured_from = clock() + warm_up_seconds
    until = measured_from + seconds

    async with _WAYS[by](address) as ask:

        async def read(number: int) -> None:
            nonlocal oldest
            topic = topic_name(number)
            while (before := clock()) < until:
                answer = await ask(topic, level)
                after = clock()
                if before >= measured_from and after <= until:
                    latencies.append(after - before)
                    oldest = max(oldest, answer.position.age_ms)

        await asyncio.gather(*(read(number) for number in range(readers)))
    latencies.sort()
    return ReadRate(
        node,
        level,
        by,
        len(latencies) / seconds,
        percentile(latencies, 0.5) * 1000,
        percentile(latencies, 0.99) * 1000,
        oldest,
    )


def measure_reads(
    cluster: LocalCluster, *, readers: int, seconds: float, warm_up_seconds: float
) -> list[ReadRate]:
    """Measure both levels, by stream and by call, at the leader and at a follower, in turn."""

    async def measure() -> list[ReadRate]:
        async with Client(cluster.addresses, timeout_seconds=30) as client:
            leader = (await client.describe_quorum()).leader_id
        leads = cluster.nodes[leader].address
        follows = next(node.address for node in cluster.nodes.values() if node.id != leader)
        return [
            await _measure(
                address,
                node,
                level,
                by,
                readers=readers,
                seconds=seconds,
                warm_up_seconds=warm_up_seconds,
            )
            for node, address in (("leader", leads), ("follower", follows))
            for level in _LEVELS
            for by in _WAYS
        ]

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(measure())

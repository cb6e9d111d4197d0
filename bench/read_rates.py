"""Linearizable and local reads of a three-node Quorate, asked of the leader and of a follower.

One read is DescribeConfigs of one topic, as a unary call, in a closed loop of so many readers.
What gRPC itself can do with as many callers stands beside it (``floors``).
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

import grpc

from bench.closed_loop import percentile, topic_name
from bench.loop import loop_factory
from quorate.client.client import Client
from quorate.client.queries import LINEARIZABLE, LOCAL
from quorate.client.writes import TOPIC
from quorate.demo.local_cluster import LocalCluster
from quorum.v1 import metadata_pb2, metadata_pb2_grpc

READERS = 64
_LEVELS = {"linearizable": LINEARIZABLE, "local": LOCAL}


@dataclass(frozen=True, slots=True)
class ReadRate:
    """One measurement. ``ages_ms_max`` is the oldest age that an answer admitted."""

    node: str
    level: str
    per_second: float
    p50_ms: float
    p99_ms: float
    ages_ms_max: int


async def _measure(
    address: str, node: str, level: str, *, readers: int, seconds: float, warm_up_seconds: float
) -> ReadRate:
    latencies: list[float] = []
    oldest = 0
    clock = time.perf_counter
    measured_from = clock() + warm_up_seconds
    until = measured_from + seconds

    async with grpc.aio.insecure_channel(address) as channel:
        stub = metadata_pb2_grpc.MetadataServiceStub(channel)  # type: ignore[no-untyped-call]  # generated

        async def read(number: int) -> None:
            nonlocal oldest
            request = metadata_pb2.DescribeConfigsRequest(
                read=_LEVELS[level],
                resources=[metadata_pb2.ConfigResource(type=TOPIC, name=topic_name(number))],
            )
            while (before := clock()) < until:
                answer = await stub.DescribeConfigs(request, timeout=30)
                after = clock()
                if before >= measured_from and after <= until:
                    latencies.append(after - before)
                    oldest = max(oldest, answer.position.age_ms)

        await asyncio.gather(*(read(number) for number in range(readers)))
    latencies.sort()
    return ReadRate(
        node,
        level,
        len(latencies) / seconds,
        percentile(latencies, 0.5) * 1000,
        percentile(latencies, 0.99) * 1000,
        oldest,
    )


def measure_reads(
    cluster: LocalCluster, *, readers: int, seconds: float, warm_up_seconds: float
) -> list[ReadRate]:
    """Both levels at the leader and at a follower of a running cluster, one after the other."""

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
                readers=readers,
                seconds=seconds,
                warm_up_seconds=warm_up_seconds,
            )
            for node, address in (("leader", leads), ("follower", follows))
            for level in _LEVELS
        ]

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(measure())

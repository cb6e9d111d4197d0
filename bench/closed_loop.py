"""Closed-loop writers against a quorum: each waits for its response before the next write.

One write is a validated change of a topic's configuration with a value of 100 bytes. It has a
producer's sequence number, and principal, client id, request id and reason in its record headers.
The response comes once it is committed and applied.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import time
from dataclasses import dataclass

from quorate.client.client import Client
from quorate.client.results.commands import RegisterBrokerResult
from quorate.client.writes import TOPIC
from quorum.v1 import commands_pb2 as wire

VALUE_BYTES = 100
TOPICS = 64
CONFIG_NAME = "quorate.note"
_TOPICS_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class LoadResult:
    """One closed-loop measurement. Times in milliseconds."""

    writers: int
    writes: int
    seconds: float
    p50_ms: float
    p99_ms: float
    max_ms: float
    client_us_per_write: float

    @property
    def rate(self) -> float:
        """Acknowledged writes per second."""
        return self.writes / self.seconds


def percentile(ascending: list[float], fraction: float) -> float:
    """Return the smallest value that ``fraction`` of a sorted, non-empty list does not exceed."""
    return ascending[min(len(ascending) - 1, int(fraction * len(ascending)))]


async def create_topics(client: Client, broker_id: int = 1001) -> None:
    """Create one broker and the topics whose configuration the writers change."""
    registration = wire.RegisterBroker(
        broker_id=broker_id, incarnation_id=bytes(15) + b"\x01", log_dirs=[b"\x80" + bytes(15)]
    )
    registration.cluster_id = (await client.describe_cluster()).cluster_id
    registration.listeners.add(name="PLAINTEXT", host="localhost", port=9092)
    for name, low, high in (("metadata.version", 7, 33), ("kraft.version", 0, 1)):
        registration.features.add(name=name, min_version=low, max_version=high)
    applied = await client.register_broker(registration)
    await client.heartbeat(
        wire.BrokerHeartbeat(
            broker_id=broker_id,
            broker_epoch=applied.yielded(RegisterBrokerResult).broker_epoch,
            metadata_offset=(1 << 62) - 1,
        )
    )
    numbers = iter(range(TOPICS))

    async def create() -> None:
        for number in numbers:
            await client.create_topic(topic_name(number), assignments=[[broker_id]])

    await asyncio.gather(*(create() for _ in range(_TOPICS_AT_ONCE)))


def topic_name(number: int) -> str:
    """Return the topic that the write of this number changes."""
    return f"bench-{number % TOPICS}"


def config_change(number: int) -> wire.Command:
    """Return a change with a new value; an equal value would write nothing."""
    command = wire.Command()
    change = command.incremental_alter_configs
    change.resource_type = TOPIC
    change.resource_name = topic_name(number)
    change.alterations.add(
        name=CONFIG_NAME,
        operation=wire.CONFIG_OPERATION_SET,
        value=f"{number:x}-".ljust(VALUE_BYTES, "x"),
    )
    command.origin.request_id = f"write-{number}"
    return command


async def run_writers(
    client: Client, writers: int, *, seconds: float, warm_up_seconds: float, first_number: int
) -> LoadResult:
    """Run this many concurrent writers for a while and measure the latency of every write.

    ``first_number`` is the number of this run's first write; numbers must be unique over runs.
    """
    latencies: list[float] = []
    numbers = itertools.count(first_number)
    clock = time.perf_counter
    started = clock()
    measured_from = started + warm_up_seconds
    until = measured_from + seconds

    async def write() -> None:
        while (before := clock()) < until:
            await client.write(config_change(next(numbers)))
            after = clock()
            if before >= measured_from and after <= until:
                latencies.append(after - before)

    gc.collect()
    gc.freeze()
    tasks = [asyncio.create_task(write()) for _ in range(writers)]
    await asyncio.sleep(max(0.0, measured_from - clock()))
    cpu_before = time.process_time()
    await asyncio.gather(*tasks)
    cpu_seconds = time.process_time() - cpu_before
    latencies.sort()
    return LoadResult(
        writers=writers,
        writes=len(latencies),
        seconds=seconds,
        p50_ms=percentile(latencies, 0.5) * 1000,
        p99_ms=percentile(latencies, 0.99) * 1000,
        max_ms=latencies[-1] * 1000,
        client_us_per_write=cpu_seconds / len(latencies) * 1e6,
    )

"""A cluster of three nodes with many partitions: creation, a fence, a checkpoint, a restart.

The client registers brokers, keeps their sessions alive, and creates topics as fast as the nodes
take them. Another client describes a topic meanwhile. Then brokers are unregistered, each of which
fences thousands of partitions as one record, until that makes the nodes write a checkpoint.
Latencies of writes at a fixed rate are compared while a checkpoint is written and while none is.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.closed_loop import percentile
from bench.describing import describing
from bench.scale_image import BROKERS, PARTITIONS_PER_TOPIC, REPLICAS
from bench.watch_fan_out import resident_mib
from quorate.client.client import Client
from quorate.client.results.commands import RegisterBrokerResult
from quorate.client.writes import TOPIC
from quorate.demo.local_cluster import LocalCluster, LocalNode
from quorum.v1 import commands_pb2 as wire

CREATORS = 64
DESCRIBED = "described"
WRITES_PER_SECOND = 1000
_HEARTBEAT_SECONDS = 2.0
_QUIET_SECONDS = 10.0
_CHECKPOINT_SECONDS_MAX = 600.0
_POLL_SECONDS = 0.05
_BROKER_IDS = range(1001, 1001 + BROKERS)

SETTINGS: dict[str, object] = {
    "limits.disk_free_bytes_min": 0,
    # Two brokers of a hundred have six of a hundred partitions between them.
    "snapshot.min_changed_records_ratio": 0.05,
    "snapshot.max_bytes_between": 1 << 20,
}


@dataclass(slots=True)
class Latencies:
    """Milliseconds of answered calls."""

    values: list[float] = field(default_factory=list)

    def p(self, fraction: float) -> float | None:
        """Return a percentile; None without calls."""
        return round(percentile(sorted(self.values), fraction), 2) if self.values else None

    async def measure(self, call: Awaitable[object]) -> None:
        """Wait for a call and keep its time."""
        started = time.perf_counter()
        await call
        self.values.append((time.perf_counter() - started) * 1000)


def _directory(broker_id: int) -> bytes:
    return b"\x80" + bytes(11) + broker_id.to_bytes(4, "big")


class ManyPartitions:
    """The client that changes one cluster."""

    def __init__(self, cluster: LocalCluster, client: Client, progress: Callable[[str], None]):
        self._cluster = cluster
        self._client = client
        self._progress = progress
        self._epochs: dict[int, int] = {}
        self._beats = Latencies()
        self._numbers = itertools.count()
        self._topics = 0

    async def measure(self, topics: int) -> dict[str, object]:
        """Return the figures of a cluster with that many topics."""
        async with self.brokers():
            created = await self.create(topics)
            created |= {"node_mib": self._memory()}
            quiet = Latencies()
            async with self._writing(quiet):
                await asyncio.sleep(_QUIET_SECONDS)
            fenced = await self._fence_until_checkpoint(quiet)
        return created | fenced

    @asynccontextmanager
    async def brokers(self) -> AsyncIterator[None]:
        """Register the brokers, and keep their sessions alive."""
        await self._register()
        async with self._repeated(_HEARTBEAT_SECONDS, self._beat):
            yield

    async def _register(self) -> None:
        cluster_id = (await self._client.describe_cluster()).cluster_id
        for broker_id in _BROKER_IDS:
            registration = wire.RegisterBroker(
                broker_id=broker_id,
                incarnation_id=_directory(broker_id),
                log_dirs=[_directory(broker_id)],
                cluster_id=cluster_id,
            )
            registration.listeners.add(name="PLAINTEXT", host="localhost", port=9092)
            for name, low, high in (("metadata.version", 7, 33), ("kraft.version", 0, 1)):
                registration.features.add(name=name, min_version=low, max_version=high)
            applied = await self._client.register_broker(registration)
            self._epochs[broker_id] = applied.yielded(RegisterBrokerResult).broker_epoch
        await self._beat()

    async def _beat(self) -> None:
        await asyncio.gather(
            *(
                self._beats.measure(
                    self._client.heartbeat(
                        wire.BrokerHeartbeat(
                            broker_id=broker_id,
                            broker_epoch=epoch,
                            metadata_offset=(1 << 62) - 1,
                        )
                    )
                )
                for broker_id, epoch in self._epochs.items()
            )
        )

    # ------------------------------------------------------------------ parts

    async def create(self, topics: int) -> dict[str, object]:
        """Create that many topics, and return what it took."""
        numbers = iter(range(topics))

        async def create() -> None:
            for number in numbers:
                await self._client.create_topic(
                    f"scale-{number}",
                    partitions=PARTITIONS_PER_TOPIC,
                    replication_factor=REPLICAS,
                )
                self._topics += 1
                if self._topics % (topics // 20 or 1) == 0:
                    self._progress(f"{self._topics * PARTITIONS_PER_TOPIC:,} partitions")

        await self._client.create_topic(
            DESCRIBED, partitions=PARTITIONS_PER_TOPIC, replication_factor=REPLICAS
        )
        leader = await self._leader()
        follower = next(node for node in self._cluster.nodes.values() if node is not leader)
        asked = {"leader": leader.address, "follower": follower.address}
        async with describing(asked, DESCRIBED) as milliseconds:
            started = time.perf_counter()
            await asyncio.gather(*(create() for _ in range(CREATORS)))
            seconds = time.perf_counter() - started
        return {
            "partitions": topics * PARTITIONS_PER_TOPIC,
            "created_partitions_per_second": round(topics * PARTITIONS_PER_TOPIC / seconds),
            "describe_ms": {
                f"{name} {text}": Latencies(values).p(fraction)
                for name, values in milliseconds.items()
                for text, fraction in (("p50", 0.5), ("p99", 0.99))
            },
            "heartbeat_ms_while_creating": {
                "p99": self._beats.p(0.99),
                "max": self._beats.p(1.0),
            },
        }

    async def _fence_until_checkpoint(self, quiet: Latencies) -> dict[str, object]:
        leader = await self._leader()
        before = newest_checkpoint(leader.data_dir)
        fences, busy, beats = Latencies(), Latencies(), Latencies()
        self._beats = beats
        async with self._writing(Latencies()):
            for broker_id in list(self._epochs)[:2]:
                del self._epochs[broker_id]
                await fences.measure(self._client.unregister_broker(broker_id))
                await self._beat()
        self._progress("fenced two brokers; waiting for the checkpoint")
        started = time.perf_counter()
        async with self._writing(busy):
            while newest_checkpoint(leader.data_dir) == before:
                if time.perf_counter() - started > _CHECKPOINT_SECONDS_MAX:
                    raise TimeoutError("the leader wrote no checkpoint")
                await asyncio.sleep(_POLL_SECONDS)
        return {
            "fence_ms": {"p50": fences.p(0.5), "max": fences.p(1.0)},
            "heartbeat_ms_while_fencing": {"p99": beats.p(0.99), "max": beats.p(1.0)},
            "checkpoint_seconds": round(time.perf_counter() - started, 2),
            "write_ms_before": {"p50": quiet.p(0.5), "p99": quiet.p(0.99)},
            "write_ms_while_checkpointing": {"p50": busy.p(0.5), "p99": busy.p(0.99)},
            "writes_while_checkpointing": len(busy.values),
        }

    async def _leader(self) -> LocalNode:
        return self._cluster.nodes[(await self._client.describe_quorum()).leader_id]

    def _memory(self) -> dict[str, float]:
        return {str(node.id): round(resident_mib(node), 1) for node in self._cluster.nodes.values()}

    # ------------------------------------------------------------------ steady work

    @asynccontextmanager
    async def _repeated(
        self, seconds: float, call: Callable[[], Awaitable[None]]
    ) -> AsyncIterator[None]:
        """Make the call again and again, ``seconds`` after its last one ended."""

        async def repeat() -> None:
            while True:
                await asyncio.sleep(seconds)
                await call()

        task = asyncio.create_task(repeat())
        try:
            yield
        finally:
            if task.done():
                task.result()
            task.cancel()
            await asyncio.wait([task])

    @asynccontextmanager
    async def _writing(self, latencies: Latencies) -> AsyncIterator[None]:
        """Write at a fixed rate, however long each write takes."""
        tasks: set[asyncio.Task[None]] = set()

        async def write() -> None:
            started, sent = time.perf_counter(), 0
            while True:
                due = int((time.perf_counter() - started) * WRITES_PER_SECOND)
                for _ in range(due - sent):
                    task = asyncio.create_task(
                        latencies.measure(self._client.write(self._config_change()))
                    )
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)
                sent = due
                await asyncio.sleep(1 / WRITES_PER_SECOND)

        writer = asyncio.create_task(write())
        try:
            yield
        finally:
            writer.cancel()
            await asyncio.wait([writer])
            await asyncio.gather(*tasks)

    def _config_change(self) -> wire.Command:
        number = next(self._numbers)
        command = wire.Command()
        change = command.incremental_alter_configs
        change.resource_type = TOPIC
        change.resource_name = f"scale-{number % min(self._topics, 64)}"
        change.alterations.add(
            name="retention.ms", operation=wire.CONFIG_OPERATION_SET, value=str(number + 1)
        )
        return command


def restart_seconds(cluster: LocalCluster, node: LocalNode) -> float:
    """Stop a node, start it from its checkpoint, and return the seconds until it is ready."""
    cluster.stop(node)
    started = time.perf_counter()
    cluster.start(node)
    cluster.wait_ready([node])
    return time.perf_counter() - started


def newest_checkpoint(folder: Path) -> Path | None:
    """Return the checkpoint with the highest end offset below a folder, if there is one."""
    return max(folder.rglob("*.checkpoint"), key=lambda path: path.name, default=None)

"""The writes of a realistic cluster, as its brokers and administrators would send them.

Brokers register from racks and keep heart-beating; topics are created; then churn: ISRs shrink
and grow, configurations change, brokers are restarted. Everything is drawn from one seed and
goes through the client library, so every record carries who wrote it and why.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from quorate.client.client import Client
from quorate.client.errors import ClientError, RefusedError
from quorate.client.results.commands import RegisterBrokerResult
from quorum.v1 import commands_pb2 as wire

HEARTBEAT_SECONDS = 2.0
FEATURES = (("metadata.version", 7, 33), ("kraft.version", 0, 1))
CAUGHT_UP_OFFSET = (1 << 62) - 1
_RACKS = ("rack-a", "rack-b", "rack-c")
_TOPIC_WORDS = ("orders", "payments", "clicks", "shipments", "audit", "sessions", "prices")
_SOFT = (ClientError,)


@dataclass(slots=True)
class Broker:
    """One simulated broker: only what it must remember between requests."""

    id: int
    epoch: int = -1


@dataclass(slots=True)
class Counts:
    """What was acknowledged so far."""

    acknowledged: int = 0
    by_kind: dict[str, int] = field(default_factory=dict)

    def add(self, kind: str) -> None:
        """One more acknowledged write of ``kind``."""
        self.acknowledged += 1
        self.by_kind[kind] = self.by_kind.get(kind, 0) + 1


class Workload:
    """Writes for one cluster. All coroutines run on one loop and may run together."""

    def __init__(self, client: Client, cluster_id: str, *, seed: int, brokers: int) -> None:
        self.counts = Counts()
        self.brokers = [Broker(1001 + place) for place in range(brokers)]
        self.topics: list[str] = []
        self._client = client
        self._cluster_id = cluster_id
        self._rng = random.Random(seed)

    # ------------------------------------------------------------------ setting up

    async def start_brokers(self) -> None:
        """Register and unfence every broker."""
        await asyncio.gather(*(self._start(broker) for broker in self.brokers))

    async def _start(self, broker: Broker) -> None:
        registration = wire.RegisterBroker(
            broker_id=broker.id,
            cluster_id=self._cluster_id,
            incarnation_id=self._rng.randbytes(16),
            rack=_RACKS[broker.id % len(_RACKS)],
            log_dirs=[b"\x80" + self._rng.randbytes(15)],
        )
        registration.listeners.add(
            name="PLAINTEXT", host=f"broker-{broker.id}.example", port=9092, security_protocol=0
        )
        for name, low, high in FEATURES:
            registration.features.add(name=name, min_version=low, max_version=high)
        applied = await self._client.register_broker(registration)
        broker.epoch = applied.yielded(RegisterBrokerResult).broker_epoch
        self.counts.add("register broker")
        await self._beat(broker)
        self.counts.add("unfence broker")

    async def _beat(self, broker: Broker) -> None:
        await self._client.heartbeat(
            wire.BrokerHeartbeat(
                broker_id=broker.id, broker_epoch=broker.epoch, metadata_offset=CAUGHT_UP_OFFSET
            )
        )

    async def create_topics(
        self, count: int, partitions: int, *, on_topic: Callable[[], None], writers: int = 16
    ) -> None:
        """Create ``count`` topics of ``partitions`` partitions, three replicas each."""
        names = [
            f"{self._rng.choice(_TOPIC_WORDS)}.{place:04d}"
            for place in range(len(self.topics), len(self.topics) + count)
        ]
        waiting = iter(names)

        async def writer() -> None:
            for name in waiting:
                await self._client.create_topic(
                    name,
                    partitions=partitions,
                    replication_factor=min(3, len(self.brokers)),
                    configs={"retention.ms": str(3_600_000 * self._rng.randint(1, 168))},
                )
                self.counts.add("create topic")
                on_topic()

        await asyncio.gather(*(writer() for _ in range(writers)))
        self.topics.extend(names)

    # ------------------------------------------------------------------ churn

    @contextlib.asynccontextmanager
    async def heartbeats(self) -> AsyncIterator[None]:
        """Keep every broker's session while the block runs."""

        async def beat_for_ever() -> None:
            while True:
                for broker in self.brokers:
                    with contextlib.suppress(*_SOFT):
                        await self._beat(broker)
                await asyncio.sleep(HEARTBEAT_SECONDS)

        task = asyncio.create_task(beat_for_ever(), name="heartbeats")
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def churn(
        self,
        *,
        should_stop: Callable[[], bool],
        on_write: Callable[[], None] = lambda: None,
        writers: int = 8,
    ) -> None:
        """Make changes until stopped; refusals are ignored, failures raised."""

        async def writer() -> None:
            while not should_stop():
                # It is refused if another writer changed the same partition first.
                with contextlib.suppress(RefusedError):
                    await self._one_change()
                on_write()

        await asyncio.gather(*(writer() for _ in range(writers)))

    async def _one_change(self) -> None:
        topic = self._rng.choice(self.topics)
        if self._rng.random() < 0.5:
            await self._client.set_config(
                wire.CONFIG_RESOURCE_TYPE_TOPIC,
                topic,
                self._rng.choice(("retention.ms", "segment.bytes", "max.message.bytes")),
                str(self._rng.randint(1_048_576, 1_073_741_824)),
            )
            self.counts.add("alter config")
        else:
            await self._change_isr(topic)

    async def _change_isr(self, topic: str) -> None:
        """Every leader of the topic drops a follower from its ISR, or takes it back."""
        answer = await self._client.describe_topics([topic])
        epochs = {broker.id: broker.epoch for broker in self.brokers}
        described = answer.topics[0]
        by_leader: dict[int, list[wire.PartitionAlteration]] = {}
        for partition in described.partitions:
            if partition.leader_id not in epochs:
                continue
            isr = self._other_isr(list(partition.replicas), list(partition.isr),
                                  partition.leader_id)  # fmt: skip
            by_leader.setdefault(partition.leader_id, []).append(
                wire.PartitionAlteration(
                    partition=partition.partition,
                    leader_epoch=partition.leader_epoch,
                    partition_epoch=partition.partition_epoch,
                    isr=[
                        wire.IsrMember(broker_id=each, broker_epoch=epochs.get(each, -1))
                        for each in isr
                    ],
                )
            )
        for leader, partitions in by_leader.items():
            command = wire.AlterPartition(broker_id=leader, broker_epoch=epochs[leader])
            command.topics.add(topic_id=described.topic_id, partitions=partitions)
            await self._client.alter_partition(command)
            self.counts.add("alter partition")

    # ------------------------------------------------------------------ single acts

    async def set_retention(self, topic: str, *, days: int, reason: str) -> None:
        """One configuration change that says why."""
        change = wire.IncrementalAlterConfigs(
            resource_type=wire.CONFIG_RESOURCE_TYPE_TOPIC, resource_name=topic
        )
        change.alterations.add(
            name="retention.ms", operation=wire.CONFIG_OPERATION_SET, value=str(days * 86_400_000)
        )
        await self._client.write(
            wire.Command(incremental_alter_configs=change),
            origin=wire.CommandOrigin(reason=reason),
        )
        self.counts.add("alter config")

    async def fence_leader_of(self, topic: str) -> tuple[int, int]:
        """The broker that leads the topic's first partition asks to be fenced.

        Returns:
            Its id, and the end offset of the records that say so.
        """
        described = await self._client.describe_topics([topic])
        leader = described.topics[0].partitions[0].leader_id
        broker = next(each for each in self.brokers if each.id == leader)
        applied = await self._client.heartbeat(
            wire.BrokerHeartbeat(
                broker_id=broker.id,
                broker_epoch=broker.epoch,
                metadata_offset=CAUGHT_UP_OFFSET,
                want_fence=True,
            )
        )
        return leader, applied.offset

    def _other_isr(self, replicas: list[int], isr: list[int], leader: int) -> list[int]:
        missing = [each for each in replicas if each not in isr]
        if missing:
            return replicas
        droppable = [each for each in isr if each != leader]
        if not droppable:
            return isr
        dropped = self._rng.choice(droppable)
        return [each for each in isr if each != dropped]

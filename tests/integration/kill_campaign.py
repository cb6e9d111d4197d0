"""One run of the kill test: a cluster under load, killed again and again, then examined."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from quorate.client.client import Client
from quorate.client.errors import ClientError, OffsetOutOfRangeError
from quorate.client.log_consumer import LogConsumer, ResetPolicy
from quorate.client.queries import LOCAL
from quorate.demo.local_cluster import ClusterError, LocalNode
from quorum.log_position import LogPosition
from quorum.v1 import commands_pb2 as wire
from quorum.v1.metadata_pb2 import ReadOptions
from tests.integration.kill_schedule import Round, Victims
from tests.integration.processes import POLL_SECONDS, Processes
from tests.integration.write_check import (
    image_violations,
    keys_in,
    log_violations,
    read_log,
    write_violations,
)
from tests.integration.write_load import CONFIG_NAME, Ledger, Load

Found = TypeVar("Found")
VOLATILE = "tests.support.volatile_filesystem:VolatileFileSystem"
NO_SYNC = "tests.support.volatile_filesystem:NoSyncFileSystem"
FILESYSTEM = "node.filesystem"
PROGRESS_SECONDS_MAX = 120.0
PROGRESS_WRITES = 5


@dataclass(slots=True)
class Tally:
    """What happened, to show that the run was one worth passing."""

    rounds: int = 0
    kills: int = 0
    rounds_losing_unsynced: int = 0
    checkpoints: int = 0
    trims: int = 0
    snapshots_fetched: int = 0
    torn_tails: int = 0
    victims: dict[str, int] = field(default_factory=dict)


class Campaign:
    """Use it once: ``run``, then look at ``violations``. Owned by one event loop."""

    def __init__(
        self,
        cluster: Processes,
        *,
        seed: int,
        volatile: str = VOLATILE,
        progress_seconds: float = PROGRESS_SECONDS_MAX,
    ) -> None:
        self.cluster = cluster
        self.ledger = Ledger()
        self.tally = Tally()
        self.violations: list[str] = []
        self.history: dict[int, tuple[int, bytes]] = {}
        self._seed = seed
        self._rng = random.Random(seed + 1)
        self._volatile = volatile
        self._progress_seconds = progress_seconds

    async def run(self, rounds: Iterable[Round]) -> None:
        """Load and kill, then bring everything back and examine it.

        Raises:
            ClusterError: The cluster does not recover.
        """
        cluster = self.cluster
        load = Load(cluster.addresses, cluster.cluster_id, self.ledger, seed=self._seed)
        reader = Client(cluster.addresses, client_id="reader", timeout_seconds=10)
        await load.prepare()
        consumer = reader.consumer(reset=ResetPolicy.NONE, position=LogPosition(0))
        reading = asyncio.create_task(self._read(consumer))
        writing = asyncio.create_task(load.run())
        try:
            for each in rounds:
                await self._round(each)
            load.stop()
            await writing
            await asyncio.to_thread(cluster.wait_ready, cluster.voters)
            await self._examine(consumer, load.topics)
        finally:
            for task in (writing, reading):
                task.cancel()
            await asyncio.gather(writing, reading, return_exceptions=True)
            await load.client.close()
            await reader.close()

    # ------------------------------------------------------------------ killing

    async def _round(self, each: Round) -> None:
        await self._progress(f"before round {each.number}")
        await asyncio.sleep(each.moment_ms / 1000)
        self._fail_if_ended()
        victims = await asyncio.to_thread(self._choose, each.victims)
        tally = self.tally
        tally.rounds += 1
        tally.kills += len(victims)
        tally.victims[each.victims.value] = tally.victims.get(each.victims.value, 0) + 1
        tally.rounds_losing_unsynced += any(FILESYSTEM in node.settings for node in victims)
        self.cluster.kill_together(victims)
        await asyncio.sleep(each.down_ms / 1000)
        for node in victims:
            node.settings.pop(FILESYSTEM, None)
            if each.is_volatile_next:
                node.settings[FILESYSTEM] = self._volatile
            self.cluster.configure(node)
            self.cluster.start(node)
        if each.waits_until_ready:
            await asyncio.to_thread(self.cluster.wait_ready, victims)

    def _choose(self, victims: Victims) -> list[LocalNode]:
        voters = self.cluster.voters
        if victims is Victims.ALL:
            return voters
        if victims is Victims.ANY:
            return [self._rng.choice(voters)]
        leader = self.cluster.find_leader() or self._rng.choice(voters)
        follower = self._rng.choice([node for node in voters if node is not leader])
        if victims is Victims.LEADER:
            return [leader]
        return [leader, follower] if victims is Victims.MAJORITY else [follower]

    async def _progress(self, when: str) -> None:
        """Wait until the cluster acknowledges writes again."""
        ledger = self.ledger
        wanted = ledger.acknowledged + PROGRESS_WRITES
        await self._until(f"writes {when}", lambda: ledger.acknowledged >= wanted or None)

    def _fail_if_ended(self) -> None:
        for fault in self.cluster.ended_by_itself():
            raise ClusterError(fault)

    async def _read(self, consumer: LogConsumer) -> None:
        """Read along: what a reader was given must stay true."""
        while True:
            try:
                for record in await consumer.poll(max_wait_ms=200):
                    self.history[record.offset] = (record.leader_epoch, record.value or b"")
            except OffsetOutOfRangeError as error:
                self.violations.append(f"what was read as committed is gone: {error}")
                return
            except ClientError:
                # There is no leader at the moment.
                await asyncio.sleep(POLL_SECONDS)

    # ------------------------------------------------------------------ examining

    async def _examine(self, consumer: LogConsumer, config_topics: list[str]) -> None:
        ledger = self.ledger
        end_offset = await self._equal_images()

        async def read_to_the_end() -> bool | None:
            position = consumer.position
            is_there = position is not None and position.offset >= end_offset
            return True if is_there or self.violations else None

        await self._until_found("a reader at the end of the log", read_to_the_end)
        for node in self.cluster.voters:
            async with Client([node.address], client_id="check") as client:
                topics = await all_topics(client)
                configs = await written_configs(client, config_topics)
            self.violations += [
                f"node {node.id}: {text}" for text in image_violations(ledger, topics, configs)
            ]
        for node in self.cluster.voters:
            status = await asyncio.to_thread(self.cluster.stop, node)
            if status != 0:
                self.violations.append(f"node {node.id} ended with {status} when asked to stop")
        logs = {node.id: read_log(node.data_dir, end_offset) for node in self.cluster.voters}
        merged = {
            offset: each for log in logs.values() for offset, each in log.records.items()
        } | self.history
        found = keys_in(
            value for offset, (_, value) in sorted(merged.items()) if offset < end_offset
        )
        self.violations += write_violations(ledger, found, where="the log")
        self.violations += log_violations(logs, self.history)
        self.violations += ledger.faults
        self._tally_logs()

    def _tally_logs(self) -> None:
        text = "\n".join(node.log_path.read_text() for node in self.cluster.voters)
        self.tally.checkpoints = text.count("event=checkpoint_written")
        self.tally.trims = text.count("event=log_start_advanced")
        self.tally.snapshots_fetched = text.count("outcome=installed")
        self.tally.torn_tails = text.count("event=torn_tail_cut")

    async def examine_what_is_served(self) -> None:
        """Only what a client that knows nothing can read from the cluster as it is now."""
        await asyncio.to_thread(self.cluster.wait_ready, self.cluster.voters)
        values: list[bytes] = []
        async with Client(self.cluster.addresses, client_id="check") as client:
            consumer = client.consumer(reset=ResetPolicy.NONE, position=LogPosition(0))

            async def read_to_the_end() -> bool | None:
                values.extend(record.value or b"" for record in await consumer.poll(max_wait_ms=0))
                position = consumer.position
                is_there = position is not None and position.offset >= consumer.high_watermark > 0
                return True if is_there else None

            await self._until_found("the end of the log", read_to_the_end)
        self.violations += write_violations(
            self.ledger, keys_in(values), where="the log as it is served"
        )

    async def _equal_images(self) -> int:
        """Wait until all nodes have the same image at the same offset, and return that."""

        async def compare() -> int | None:
            seen = set()
            for node in self.cluster.voters:
                async with Client([node.address], client_id="check") as client:
                    answer = await client.describe_image()
                seen.add((answer.position.offset, answer.state_digest))
            newest = max(self.ledger.offsets.values(), default=0)
            offset = min(seen)[0]
            return offset if len(seen) == 1 and offset >= newest else None

        return await self._until_found("equal images", compare)

    async def _until(self, what: str, find: Callable[[], Found | None]) -> Found:
        async def ask() -> Found | None:
            return find()

        return await self._until_found(what, ask)

    async def _until_found(self, what: str, find: Callable[[], Awaitable[Found | None]]) -> Found:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._progress_seconds
        while (found := await find()) is None:
            self._fail_if_ended()
            if loop.time() > deadline:
                raise ClusterError(f"{what}: not within {self._progress_seconds:g} s")
            await asyncio.sleep(POLL_SECONDS)
        return found


async def all_topics(client: Client, read: ReadOptions = LOCAL) -> list[str]:
    """Return the name of every topic, at a read level."""
    names: list[str] = []
    while True:
        page = await client.list_topics(after_name=names[-1] if names else "", read=read)
        names += [topic.name for topic in page.topics]
        if not page.has_more:
            return names


async def written_configs(
    client: Client, topics: Iterable[str], read: ReadOptions = LOCAL
) -> dict[str, int]:
    """Return the load's configuration of each topic, at a read level."""
    answer = await client.describe_configs(
        [(wire.CONFIG_RESOURCE_TYPE_TOPIC, topic) for topic in topics], read=read
    )
    return {
        found.resource.name: int(entry.value)
        for found in answer.resources
        for entry in found.entries
        if entry.name == CONFIG_NAME
    }

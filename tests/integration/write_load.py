"""Writers that never write the same thing twice, and a ledger of what became of each write.

Every write carries a key that no other write has: a configuration value, or a topic's name. So
the log itself shows whether a write is there once, twice or not at all.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

import grpc

from quorate.client.client import Client
from quorate.client.errors import OutcomeUnknownError, RefusedError, UnavailableError
from quorate.demo.workload import Workload
from quorum.v1 import commands_pb2 as wire
from quorum.v1 import common_pb2
from statemachine.codec import decode_record
from statemachine.records_topics import ConfigRecord, TopicRecord

CONFIG_NAME = "retention.ms"
BROKERS = 3
TIMEOUT_SECONDS = 30.0
SHORT_TIMEOUT_SECONDS = (0.005, 0.2)
"""Some writes have so little time that their outcome is often unknown."""
SHORT_SHARE = 0.15
PAUSE_SECONDS = 0.004
VALUES_PER_WRITER = 1_000_000
HANG_SECONDS = 3.0
"""By so much a write may overstay its deadline before it counts as hanging."""


class Outcome(Enum):
    """The outcome of a write, from the client library."""

    OPEN = "not answered yet"
    ACKNOWLEDGED = "acknowledged"
    UNKNOWN = "outcome unknown"
    REFUSED = "refused"
    NEVER_SENT = "never sent"


@dataclass(slots=True)
class Ledger:
    """Every write by key. ``faults`` are things that may not happen at all."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    offsets: dict[str, int] = field(default_factory=dict)
    """End offset (exclusive) of each acknowledged write."""
    faults: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    """Seconds from call to answer of every acknowledged write."""
    answered_at: list[float] = field(default_factory=list)
    """When each of these waits was over, on the monotonic clock."""

    @property
    def acknowledged(self) -> int:
        return len(self.offsets)

    def counts(self) -> dict[str, int]:
        return {kind.value: n for kind, n in Counter(self.outcomes.values()).items()}


def write_key(value: bytes) -> str | None:
    """The key of a load's write in a record's value; None for any other record."""
    record = decode_record(value)
    if isinstance(record, ConfigRecord) and record.name == CONFIG_NAME and record.value:
        return config_key(record.resource_name, record.value)
    if isinstance(record, TopicRecord):
        return topic_key(record.name)
    return None


def config_key(resource: str, value: str) -> str:
    return f"{resource}: {CONFIG_NAME}={value}"


def topic_key(name: str) -> str:
    return f"topic {name}"


class Load:
    """Configuration writers and topic writers over one client, on one loop."""

    def __init__(
        self,
        addresses: Sequence[str],
        cluster_id: str,
        ledger: Ledger,
        *,
        seed: int,
        config_writers: int = 6,
        topic_writers: int = 1,
        credentials: grpc.ChannelCredentials | None = None,
    ) -> None:
        self.ledger = ledger
        self.client = Client(
            addresses,
            client_id="load",
            timeout_seconds=TIMEOUT_SECONDS,
            credentials=credentials,
        )
        self._workload = Workload(self.client, cluster_id, seed=seed, brokers=BROKERS)
        self._rng = random.Random(seed)
        self._config_writers = config_writers
        self._topic_writers = topic_writers
        self._is_stopping = False

    @property
    def topics(self) -> list[str]:
        """One per configuration writer."""
        return [f"load-{writer}" for writer in range(self._config_writers)]

    async def prepare(self) -> None:
        """Register brokers and create what the writers write to."""
        await self._workload.start_brokers()
        for name in self.topics:
            await self._create(name, TIMEOUT_SECONDS)

    def stop(self) -> None:
        """Let every writer finish its open write."""
        self._is_stopping = True

    async def run(self) -> None:
        """Write until stopped; return when every write has an outcome."""
        async with self._workload.heartbeats():
            await asyncio.gather(
                *(self._write_configs(place) for place in range(self._config_writers)),
                *(self._write_topics(place) for place in range(self._topic_writers)),
            )

    async def _write_configs(self, place: int) -> None:
        value = place * VALUES_PER_WRITER
        while not self._is_stopping:
            value += 1
            await self._set(f"load-{place}", str(value), self._timeout())
            await asyncio.sleep(PAUSE_SECONDS)

    async def _write_topics(self, place: int) -> None:
        number = 0
        while not self._is_stopping:
            number += 1
            await self._create(f"t-{place}-{number}", self._timeout())
            await asyncio.sleep(10 * PAUSE_SECONDS)

    def _timeout(self) -> float:
        if self._rng.random() < SHORT_SHARE:
            return self._rng.uniform(*SHORT_TIMEOUT_SECONDS)
        return TIMEOUT_SECONDS

    async def _set(self, topic: str, value: str, timeout: float) -> None:
        writing = self.client.set_config(
            wire.CONFIG_RESOURCE_TYPE_TOPIC, topic, CONFIG_NAME, value, timeout=timeout
        )
        await self._note(config_key(topic, value), writing, timeout)

    async def _create(self, name: str, timeout: float) -> None:
        writing = self.client.create_topic(name, assignments=[[1001, 1002, 1003]], timeout=timeout)
        await self._note(topic_key(name), writing, timeout)

    async def _note(self, key, writing, timeout: float) -> None:
        """Wait for a write and note what became of it."""
        ledger = self.ledger
        ledger.outcomes[key] = Outcome.OPEN
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(timeout + HANG_SECONDS):
                applied = await writing
        except OutcomeUnknownError:
            ledger.outcomes[key] = Outcome.UNKNOWN
        except UnavailableError as error:
            ledger.outcomes[key] = Outcome.NEVER_SENT
            if timeout == TIMEOUT_SECONDS:
                ledger.faults.append(f"{key}: nobody took it in {timeout:g} s: {error}")
        except RefusedError as error:
            ledger.outcomes[key] = Outcome.REFUSED
            if error.code == common_pb2.ERROR_CODE_TOPIC_ALREADY_EXISTS:
                ledger.faults.append(f"{key}: evaluated twice: {error}")
        except TimeoutError:
            ledger.outcomes[key] = Outcome.UNKNOWN
            ledger.faults.append(f"{key}: hung for {loop.time() - began:.1f} s")
        else:
            ledger.outcomes[key] = Outcome.ACKNOWLEDGED
            ledger.offsets[key] = applied.offset
            ledger.waits.append(loop.time() - began)
            ledger.answered_at.append(loop.time())

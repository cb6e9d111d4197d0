"""The image of a large cluster: memory, iteration, loading, and a broker's fence.

All times are processor time of one core, without other work in the process.
"""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

import psutil

from bench.scale_operations import measure_operations
from quorum.log.filesystem import OsFileSystem
from quorum.runtime.clock import SystemClock
from quorum.types import OffsetAndEpoch, Uuid
from snapshot.store import DirectorySnapshotStore
from snapshot.writer import write_checkpoint
from statemachine.delta import ImageDelta
from statemachine.dump import DigestedValues
from statemachine.image import EMPTY_IMAGE, MetadataImage
from statemachine.machine import StateMachine
from statemachine.records import (
    BrokerFencedEvent,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from statemachine.sections.partitions import PartitionState
from statemachine.sections.topics import TopicsImage

BROKERS = 100
PARTITIONS_PER_TOPIC = 10
REPLICAS = 3
_SNAPSHOT = OffsetAndEpoch(10_000_000, 1)
_EPOCH = 1000

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ImageScale:
    """The figures of one size. Rates are per second of processor time."""

    partitions: int
    bytes_per_partition: float
    """Growth of this process's resident memory by the loaded image."""
    load_records_per_second: float
    iterated_per_second: float
    fenced_partitions: int
    fence_ms: float
    lookup_us: float
    """One topic's partitions, looked up by its name."""
    iterated_floor: float
    """The same iteration of dictionaries of dictionaries of the same states."""
    lookup_floor_us: float
    """The same lookup in two dictionaries: what the memory of the machine costs."""
    operations_us: Mapping[str, float]
    """What one operation of a leader costs (``scale_operations``)."""
    checkpoint_bytes: int = 0
    checkpoint_records_per_second: float = 0.0
    """Writing the checkpoint, with its digest."""


def _records(topics: int) -> Iterator[MetadataRecord]:
    yield FeatureLevelRecord("metadata.version", 33)
    for broker in range(BROKERS):
        yield RegisterBrokerRecord(broker, broker_epoch=_EPOCH + broker, fenced=False)
    directories = [b"\x80" + bytes(14) + bytes([each]) for each in range(BROKERS)]
    for topic in range(topics):
        topic_id = b"\x40" + topic.to_bytes(15, "big")
        yield TopicRecord(f"scale-{topic}", topic_id)
        for number in range(PARTITIONS_PER_TOPIC):
            # Consecutive brokers from a start that differs by topic, as the placement does.
            first = topic * 7 + number
            replicas = tuple((first + each) % BROKERS for each in range(REPLICAS))
            yield PartitionRecord(
                number, topic_id, replicas, replicas, leader=replicas[0], leader_epoch=0,
                partition_epoch=0, directories=tuple(directories[each] for each in replicas),
            )  # fmt: skip


def measure_image(folder: Path, partitions: int) -> ImageScale:
    """Write the checkpoint of a cluster of this size; load it in a process of its own."""
    topics = partitions // PARTITIONS_PER_TOPIC
    with tempfile.TemporaryDirectory(dir=folder) as name:
        size, write_seconds = _in_new_process(_write, Path(name), topics)
        return replace(
            _in_new_process(_load, Path(name), topics),
            checkpoint_bytes=size,
            checkpoint_records_per_second=topics * (PARTITIONS_PER_TOPIC + 1) / write_seconds,
        )


def _in_new_process(work: Callable[[Path, int], T], folder: Path, topics: int) -> T:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, folder, topics).result()


def _load(folder: Path, topics: int) -> ImageScale:
    store = DirectorySnapshotStore(OsFileSystem(), folder, SystemClock())
    gc.collect()
    before = psutil.Process().memory_info().rss
    machine = StateMachine()
    started = time.process_time()
    machine.load(_SNAPSHOT, store.reader(_SNAPSHOT).batches())
    load_seconds = time.process_time() - started
    gc.collect()
    grown = psutil.Process().memory_info().rss - before
    store.close()
    image = machine.image
    fenced, fence_seconds = _fence(image)
    iterated_floor, lookup_floor = _floors(image.topics, topics)
    return ImageScale(
        partitions=topics * PARTITIONS_PER_TOPIC,
        bytes_per_partition=grown / (topics * PARTITIONS_PER_TOPIC),
        load_records_per_second=machine.changes.snapshot_records / load_seconds,
        iterated_per_second=_iterate(image.topics.partitions),
        fenced_partitions=fenced,
        fence_ms=fence_seconds * 1000,
        lookup_us=_look_up(image.topics, topics) * 1e6,
        iterated_floor=iterated_floor,
        lookup_floor_us=lookup_floor * 1e6,
        operations_us=measure_operations(
            machine, topics, partitions=PARTITIONS_PER_TOPIC, replicas=REPLICAS
        ),
    )


def _write(folder: Path, topics: int) -> tuple[int, float]:
    delta = ImageDelta(EMPTY_IMAGE)
    for record in _records(topics):
        delta.replay(record)
    values = DigestedValues(delta.finish())
    started = time.process_time()
    info = write_checkpoint(
        OsFileSystem(), folder, _SNAPSHOT, values=values, last_contained_log_timestamp=1,
        state_digest=values.digest,
    )  # fmt: skip
    return info.size_bytes, time.process_time() - started


class _PlainTopics:
    """The topics of an image in dictionaries."""

    def __init__(self, topics: TopicsImage) -> None:
        self.ids = dict(topics.ids)
        # As in the image: made in the order of creation, and read in another.
        made = {key: dict(topics.partitions[key]) for key in sorted(topics.partitions)}
        self.partitions = {key: made[key] for key in topics.partitions}

    def id_of(self, name: str) -> Uuid | None:
        return self.ids.get(name)

    def partitions_of(self, topic_id: Uuid) -> Mapping[int, PartitionState]:
        return self.partitions.get(topic_id, {})


def _floors(image: TopicsImage, topics: int) -> tuple[float, float]:
    """The rate of iteration and the seconds of a lookup."""
    plain = _PlainTopics(image)
    return _iterate(plain.partitions), _look_up(plain, topics)


def _iterate(topics: Mapping[Uuid, Mapping[int, PartitionState]]) -> float:
    started = time.process_time()
    count = sum(
        state.leader >= 0 for partitions in topics.values() for state in partitions.values()
    )
    return count / (time.process_time() - started)


def _fence(image: MetadataImage) -> tuple[int, float]:
    broker = BROKERS // 2
    delta = ImageDelta(image)
    gc.disable()  # As in a node, which collects cycles between turns (quorate.server).
    started = time.process_time()
    delta.replay(BrokerFencedEvent(broker, _EPOCH + broker))
    fenced = delta.finish()
    seconds = time.process_time() - started
    gc.enable()
    affected = len(image.topics.in_isr_of(broker)) - len(fenced.topics.in_isr_of(broker))
    return affected, seconds


def _look_up(image: TopicsImage | _PlainTopics, topics: int) -> float:
    asked = range(0, topics, max(1, topics // 1000))
    started = time.process_time()
    for topic in asked:
        topic_id = image.id_of(f"scale-{topic}")
        if topic_id is None or len(image.partitions_of(topic_id)) != PARTITIONS_PER_TOPIC:
            raise RuntimeError(f"topic scale-{topic} is not in the image")
    return (time.process_time() - started) / len(asked)

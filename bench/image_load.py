"""Load a checkpoint into an image: records per second, with all checksums and the state digest."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from quorum.log.filesystem import OsFileSystem
from quorum.runtime.clock import SystemClock
from quorum.types import OffsetAndEpoch
from snapshot.store import DirectorySnapshotStore
from snapshot.writer import write_checkpoint
from statemachine.delta import ImageDelta
from statemachine.dump import DigestedValues
from statemachine.image import EMPTY_IMAGE, MetadataImage
from statemachine.machine import StateMachine
from statemachine.records import (
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    TopicRecord,
)

SNAPSHOT = OffsetAndEpoch(1_000_000, 1)
PARTITIONS_PER_TOPIC = 18
_DIRECTORIES = tuple(b"\x80" + bytes(14) + bytes([each]) for each in range(3))


@dataclass(frozen=True, slots=True)
class LoadOfImage:
    """One load of a checkpoint."""

    records: int
    size_bytes: int
    seconds: float
    cpu_seconds: float

    @property
    def records_per_cpu_second(self) -> float:
        """The rate on a processor of its own."""
        return self.records / self.cpu_seconds

    @property
    def records_per_second(self) -> float:
        """Data records per second, without control records."""
        return self.records / self.seconds


def _records(count: int) -> Iterator[MetadataRecord]:
    """Yield topics of eighteen partitions and one configuration each, as in a large cluster."""
    yield FeatureLevelRecord("metadata.version", 33)
    for number in range(count // (PARTITIONS_PER_TOPIC + 2)):
        topic_id = b"\x40" + number.to_bytes(15, "big")
        yield TopicRecord(f"topic-{number}", topic_id)
        for partition in range(PARTITIONS_PER_TOPIC):
            replicas = tuple(1 + (partition + each) % 9 for each in range(3))
            yield PartitionRecord(
                partition_id=partition, topic_id=topic_id, replicas=replicas, isr=replicas,
                leader=replicas[0], leader_epoch=3, partition_epoch=7, directories=_DIRECTORIES,
            )  # fmt: skip
        yield ConfigRecord(2, f"topic-{number}", "retention.ms", str(3_600_000 + number))


def _image(count: int) -> MetadataImage:
    delta = ImageDelta(EMPTY_IMAGE)
    for record in _records(count):
        delta.replay(record)
    return delta.finish()


def measure_image_load(folder: Path, *, records: int, rounds: int) -> list[LoadOfImage]:
    """Write a checkpoint of about ``records`` records and load it ``rounds`` times."""
    results: list[LoadOfImage] = []
    with tempfile.TemporaryDirectory(dir=folder) as name:
        values = DigestedValues(_image(records))
        info = write_checkpoint(
            OsFileSystem(), Path(name), SNAPSHOT, values=values, last_contained_log_timestamp=1,
            state_digest=values.digest,
        )  # fmt: skip
        store = DirectorySnapshotStore(OsFileSystem(), Path(name), SystemClock())
        for _ in range(rounds):
            machine = StateMachine()
            started, cpu_started = time.perf_counter(), time.process_time()
            machine.load(SNAPSHOT, store.reader(SNAPSHOT).batches())
            seconds = time.perf_counter() - started
            cpu_seconds = time.process_time() - cpu_started
            results.append(
                LoadOfImage(machine.changes.snapshot_records, info.size_bytes, seconds, cpu_seconds)
            )
        store.close()
    return results

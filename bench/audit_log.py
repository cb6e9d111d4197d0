"""A log of realistic metadata of any size, for measurements of the audit trail.

Thirty brokers; topics of ten partitions. Most records are leader and ISR changes; one in fifty
sets a configuration, and a broker is fenced or unfenced now and then, which changes the partitions
it leads by derivation.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path

from audit.directory import plan_source
from audit.replay import image_at
from quorum.batch import encode_batch
from quorum.control import encode_control_batch
from quorum.control_records import LeaderChange
from quorum.log.config import LogConfig
from quorum.log.filesystem import OsFileSystem
from quorum.log.identity import MetaProperties, write_identity
from quorum.log.layout import partition_directory
from quorum.log.recovery import open_log
from snapshot.writer import write_checkpoint
from statemachine.codec import encode_record
from statemachine.dump import dump_values
from statemachine.records import (
    BrokerFencedEvent,
    BrokerUnfencedEvent,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)

BROKERS = 30
PARTITIONS_PER_TOPIC = 10
TOPICS_MAX = 1000
_TIME_0 = 1_700_000_000_000
_SEED = 20
_SEGMENT_BYTES = 32 << 20


def write_log(home: Path, records: int) -> int:
    """Write a data directory with a log of about so many records; return its end offset."""
    fs = OsFileSystem()
    home.mkdir(parents=True)
    write_identity(fs, home, MetaProperties("audit-bench", 1, bytes(range(1, 17))))
    log, _ = open_log(fs, partition_directory(home), LogConfig(segment_bytes=_SEGMENT_BYTES))
    change = encode_control_batch(
        [LeaderChange(1, (1, 2, 3), (1, 2, 3))], base_offset=0, epoch=1, timestamp=_TIME_0
    )
    log.append(change, base_offset=0, end_offset=1)
    for number, command in enumerate(_commands(records)):
        base = log.end.offset
        headers = [
            ("principal", f"User:team-{number % 12}".encode()),
            ("request-id", f"request-{number}".encode()),
            ("reason", b"reassignment" if number % 3 else b"retention policy"),
        ]
        data = encode_batch(
            [encode_record(record) for record in command],
            base_offset=base,
            epoch=1,
            timestamp=_TIME_0 + base * 50,
            headers=headers,
        )
        log.append(data, base_offset=base, end_offset=base + len(command))
    log.flush()
    end = log.end.offset
    log.store_high_watermark(end)
    log.close()
    return end


def add_checkpoints(home: Path, count: int) -> None:
    """Write so many checkpoints into such a directory, about as far apart, as a node does."""
    plan = plan_source(home)
    wanted = [plan.end_offset * number // (count + 1) for number in range(1, count + 1)]
    offsets = [mark.offset for mark in plan.marks]
    for number in sorted({bisect_left(offsets, offset) for offset in wanted}):
        mark = plan.marks[number]
        # Planned again, since the last checkpoint shortens the replay of the next one.
        found = image_at(plan_source(home), mark.offset)
        write_checkpoint(
            OsFileSystem(),
            partition_directory(home),
            found.snapshot_id,
            values=dump_values(found.image),
            last_contained_log_timestamp=found.image.provenance.timestamp_ms,
            log_digest=mark.value,
        )


def _commands(records: int) -> Iterator[list[MetadataRecord]]:
    rng = random.Random(_SEED)
    yield [FeatureLevelRecord("metadata.version", 27)]
    for broker in range(BROKERS):
        yield [RegisterBrokerRecord(broker, broker_epoch=broker, fenced=False)]
    topics = max(1, min(TOPICS_MAX, records // 300))
    isrs: dict[tuple[int, int], tuple[int, ...]] = {}
    for topic in range(topics):
        created: list[MetadataRecord] = [TopicRecord(f"topic-{topic}", _topic_id(topic))]
        for partition in range(PARTITIONS_PER_TOPIC):
            replicas = tuple(rng.sample(range(BROKERS), 3))
            isrs[topic, partition] = replicas
            created.append(
                PartitionRecord(
                    partition, _topic_id(topic), replicas, replicas, leader=replicas[0],
                    leader_epoch=0, partition_epoch=0,
                )
            )  # fmt: skip
        yield created
    done = 1 + BROKERS + topics * (1 + PARTITIONS_PER_TOPIC)
    while done < records:
        command = _change(rng, topics, isrs)
        done += len(command)
        yield command


def _change(
    rng: random.Random, topics: int, isrs: dict[tuple[int, int], tuple[int, ...]]
) -> list[MetadataRecord]:
    kind = rng.random()
    if kind < 0.02:
        topic, value = rng.randrange(topics), str(rng.randrange(1, 30) * 86_400_000)
        return [ConfigRecord(2, f"topic-{topic}", "retention.ms", value)]
    if kind < 0.0205:
        broker = rng.randrange(BROKERS)
        return [BrokerFencedEvent(broker, broker), BrokerUnfencedEvent(broker, broker)]
    found: list[MetadataRecord] = []
    for _ in range(rng.choice((1, 1, 1, 4, 16))):
        key = (rng.randrange(topics), rng.randrange(PARTITIONS_PER_TOPIC))
        replicas = isrs[key]
        isr = replicas if rng.random() < 0.5 else tuple(rng.sample(replicas, 2))
        found.append(
            PartitionChangeRecord(key[1], _topic_id(key[0]), isr=isr, leader=rng.choice(isr))
        )
    return found


def _topic_id(topic: int) -> bytes:
    return b"\x40" + topic.to_bytes(15, "big")

"""``python -m bench.fence_amount``: bytes replicated when a broker goes offline (630.17).

The cluster of KIP-630: 100,000 topics of 10 partitions with three replicas each on 100 brokers, so
every broker holds 30,000 replicas. One broker is fenced in three ways: as one event, from which
every replica derives the changes, as the events of a broker that leaves in steps, and as one record
per partition. All are encoded as in the log, and all must lead to the same partitions. Prints one
JSON object.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from bench.build_form import print_form
from quorate.controller.config import ControllerConfig
from quorum.batch import encode_batch
from statemachine.codec import encode_record
from statemachine.delta import ImageDelta
from statemachine.departures import leaving_events
from statemachine.derivation import DERIVATION_VERSION, derive
from statemachine.image import EMPTY_IMAGE, MetadataImage
from statemachine.records import (
    BrokerFencedEvent,
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)

BROKERS = 100
PARTITIONS_PER_TOPIC = 10
REPLICAS = 3
GONE = 7
STEP_PARTITIONS = ControllerConfig("").departure_partitions_max
_RECORDS_PER_BATCH = 1000


@dataclass(frozen=True, slots=True)
class Amount:
    """Bytes of record batches, without compression."""

    topics: int
    partitions_changed: int
    event_bytes: int
    steps_bytes: int
    """All events of a broker that leaves in steps (ADR 74)."""
    records_bytes: int

    @property
    def bytes_per_partition(self) -> float:
        """Bytes per partition of the records, including their share of the batch headers."""
        return self.records_bytes / self.partitions_changed

    def as_row(self) -> dict[str, float]:
        """Return the report row: bytes to one broker, and to the 99 remaining brokers."""
        return {
            **asdict(self),
            "bytes_per_partition": round(self.bytes_per_partition, 1),
            "event_bytes_to_all": self.event_bytes * (BROKERS - 1),
            "steps_bytes_to_all": self.steps_bytes * (BROKERS - 1),
            "records_bytes_to_all": self.records_bytes * (BROKERS - 1),
            "times_less": round(self.records_bytes / self.event_bytes),
        }


class DifferentOutcomeError(Exception):
    """The event and the records lead to different partitions, so the figures are void."""


def _records(topics: int) -> Iterator[MetadataRecord]:
    yield FeatureLevelRecord("metadata.version", 33)
    for broker in range(BROKERS):
        yield RegisterBrokerRecord(broker, broker_epoch=1000 + broker, fenced=False)
    for number in range(topics):
        topic_id = b"\x40" + number.to_bytes(15, "big")
        yield TopicRecord(f"topic-{number}", topic_id)
        for partition in range(PARTITIONS_PER_TOPIC):
            first = number * PARTITIONS_PER_TOPIC + partition
            replicas = tuple((first + each) % BROKERS for each in range(REPLICAS))
            yield PartitionRecord(
                partition, topic_id, replicas, replicas, leader=replicas[0], leader_epoch=3
            )


def image_of(topics: int) -> MetadataImage:
    """Return the image before the broker goes offline."""
    delta = ImageDelta(EMPTY_IMAGE)
    for record in _records(topics):
        delta.replay(record)
    return delta.finish()


def _batch_bytes(records: Sequence[MetadataRecord]) -> int:
    return sum(
        len(
            encode_batch(
                [encode_record(each) for each in records[at : at + _RECORDS_PER_BATCH]],
                base_offset=0,
                epoch=1,
                timestamp=1_700_000_000_000,
            )
        )
        for at in range(0, len(records), _RECORDS_PER_BATCH)
    )


def measure(topics: int) -> Amount:
    """Fence one broker in all ways.

    Raises:
        DifferentOutcomeError: They lead to different partitions.
    """
    image = image_of(topics)
    event = BrokerFencedEvent(GONE, 1000 + GONE, derivation_version=DERIVATION_VERSION)
    changes = derive(image, event)
    steps = [*leaving_events(image, event, STEP_PARTITIONS), event]
    by_event, by_steps, by_records = ImageDelta(image), ImageDelta(image), ImageDelta(image)
    by_event.replay(event)
    for step in steps:
        by_steps.replay(step)
    by_records.replay(BrokerRegistrationChangeRecord(GONE, 1000 + GONE, fenced=1))
    for change in changes:
        by_records.replay(change)
    one, other = by_event.finish().topics, by_records.finish().topics
    if by_steps.finish().topics != one:
        raise DifferentOutcomeError("a broker that leaves in steps")
    for each in changes:
        key = each.topic_id, each.partition_id
        if one.partition(*key) != other.partition(*key) or one.partition(
            *key
        ) == image.topics.partition(*key):
            raise DifferentOutcomeError(f"partition {key}")
    return Amount(
        topics,
        len(changes),
        _batch_bytes([event]),
        sum(_batch_bytes([each]) for each in steps),
        _batch_bytes(changes),
    )


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.fence_amount", description=__doc__)
    parser.add_argument("--topics", type=int, default=100_000)
    # Millions of objects without cycles: garbage collection would take most of the time.
    gc.disable()
    print_form()
    json.dump(measure(parser.parse_args().topics).as_row(), sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())

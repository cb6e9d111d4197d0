"""Images for tests of command evaluation, built by replaying records as a replica does."""

from __future__ import annotations

import random
from collections.abc import Sequence

from statemachine.delta import ImageDelta
from statemachine.image import EMPTY_IMAGE, MetadataImage, Provenance
from statemachine.prepare import EvaluationContext
from statemachine.records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    SupportedFeature,
    TopicRecord,
)
from statemachine.sessions import BrokerSessions

CLUSTER_ID = "test-cluster"
METADATA_LEVEL = 33
END_OFFSET = 1_000


def topic_id(number: int) -> bytes:
    return b"\x11" * 12 + number.to_bytes(4, "big")


def directory(broker_id: int, number: int = 0) -> bytes:
    return b"\x22" * 8 + broker_id.to_bytes(4, "big") + number.to_bytes(4, "big")


def incarnation(number: int) -> bytes:
    return b"\x33" * 12 + number.to_bytes(4, "big")


def registration(broker_id: int, **fields: object) -> RegisterBrokerRecord:
    """An unfenced broker with epoch 10 + id, one directory, in rack ``r<id>``."""
    record = RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=incarnation(broker_id),
        broker_epoch=10 + broker_id,
        features=(SupportedFeature("metadata.version", 7, METADATA_LEVEL),),
        rack=f"r{broker_id}",
        fenced=False,
        log_dirs=(directory(broker_id),),
    )
    for name, value in fields.items():
        setattr(record, name, value)
    return record


def replayed(*records: MetadataRecord, base: MetadataImage = EMPTY_IMAGE) -> MetadataImage:
    """Return the image after ``records`` were replayed over ``base``."""
    delta = ImageDelta(base)
    for record in records:
        delta.replay(record)
    return delta.finish(Provenance(END_OFFSET, 1, 1_000))


def small_cluster(
    *more: MetadataRecord, broker_count: int = 3, elr: bool = False, level: int = METADATA_LEVEL
) -> MetadataImage:
    """Unfenced brokers 1..n and topic "t" (number 1): partitions 0 to 2, led by 1, 2, 3."""
    records: list[MetadataRecord] = [FeatureLevelRecord("metadata.version", level)]
    if elr:
        records.append(FeatureLevelRecord("eligible.leader.replicas.version", 1))
    records.extend(registration(broker_id) for broker_id in range(1, broker_count + 1))
    records.append(TopicRecord("t", topic_id(1)))
    for index, replicas in enumerate(((1, 2, 3), (2, 3, 1), (3, 1, 2))):
        records.append(
            PartitionRecord(
                partition_id=index,
                topic_id=topic_id(1),
                replicas=replicas,
                isr=replicas,
                leader=replicas[0],
                leader_epoch=5,
                partition_epoch=7,
            )
        )
    return replayed(*records, *more)


def fenced(broker_id: int, epoch: int | None = None) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(
        broker_id, 10 + broker_id if epoch is None else epoch, fenced=1
    )


def shutting_down(broker_id: int) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(broker_id, 10 + broker_id, in_controlled_shutdown=1)


def topic_config(name: str, value: str, topic: str = "t") -> ConfigRecord:
    return ConfigRecord(2, topic, name, value)


def evaluation(
    *,
    native: bool = True,
    now_ms: int = 0,
    next_offset: int = END_OFFSET,
    seed: int = 1,
    principal: str = "",
) -> EvaluationContext:
    """Return an evaluation context without any broker session."""
    return EvaluationContext(
        cluster_id=CLUSTER_ID,
        next_offset=next_offset,
        now_ms=now_ms,
        wall_ms=5_000,
        rng=random.Random(seed),
        sessions=BrokerSessions(9_000),
        principal=principal,
        uses_native_codec=native,
    )


def after(image: MetadataImage, records: Sequence[MetadataRecord]) -> MetadataImage:
    """Return the image after a command's records were replayed over it."""
    return replayed(*records, base=image)

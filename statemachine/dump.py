"""From an image to the data records of a checkpoint, in one canonical order.

Two replicas with equal images produce the same bytes: sections in a fixed order, keys sorted,
record versions chosen by the image's own feature level, no clock and no hash order
(ADR 6). Replaying a dump over the empty image gives an equal image.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable, Iterator

from quorum.types import Uuid
from statemachine.codec_kafka import encode_kafka_frame
from statemachine.codec_native import encode_native
from statemachine.dumped_partitions import PartitionEncoder
from statemachine.image import MetadataImage, Provenance
from statemachine.import_state import IMPORT_KEY
from statemachine.imports import state_record
from statemachine.records import (
    METADATA_VERSION,
    AnsweredRequestsRecord,
    BrokerEpochRecord,
    ClientQuotaRecord,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    TopicRecord,
    ZkMigrationStateRecord,
    entity_order,
    record_version,
)
from statemachine.sections import partitions
from statemachine.sections.cluster import NO_EPOCH, BrokerRegistration, ControllerRegistration
from statemachine.sections.producer_state import record_of
from statemachine.sections.security import QuotaKey

DIGEST_BYTES = 16
_LENGTH = struct.Struct(">I")


def dump_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    """Yield the image as the records of its checkpoint, in order.

    After an import the last record is its progress: provenance, not part of the state digest.
    """
    if not image.extras:
        yield from _plain_records(image)
        return
    for record in _plain_records(image):
        extra = image.extras.get(record.record_key())
        if extra is not None:
            record.extra = extra
        yield record


def dump_values(image: MetadataImage, *, kafka: bool = False) -> Iterator[bytes]:
    """Yield the image as encoded records, in the native codec or in Kafka's."""
    level = image.features.metadata_version
    if not kafka:
        yield from dump_native(image, lambda record: record_version(record, level))
        return
    for record in dump_records(image):
        yield encode_kafka_frame(record, record_version(record, level))


def dump_native(
    image: MetadataImage,
    version_of: Callable[[MetadataRecord], int],
    shown: Callable[[MetadataRecord], MetadataRecord] | None = None,
) -> Iterator[bytes]:
    """Yield ``dump_records`` in the native codec, each in the version that ``version_of`` returns.

    ``shown`` returns what is encoded in place of a record; it changes no record of a topic or
    partition.
    """
    if image.extras:
        for record in dump_records(image):
            given = record if shown is None else shown(record)
            yield encode_native(given, version_of(given))
        return
    for record in _before_topics(image):
        given = record if shown is None else shown(record)
        yield encode_native(given, version_of(given))
    topics, encode = image.topics, PartitionEncoder(version_of).encode
    for name in sorted(topics.ids):
        topic_id = topics.ids[name]
        topic = TopicRecord(name, topic_id)
        yield encode_native(topic, version_of(topic))
        states = topics.partitions_of(topic_id)
        for index in sorted(states):
            yield encode(topic_id, index, states[index])
    for record in _behind_topics(image):
        given = record if shown is None else shown(record)
        yield encode_native(given, version_of(given))


def count_records(image: MetadataImage) -> int:
    """Return how many records ``dump_records`` yields, without making them."""
    topics, producer_state = image.topics, image.producers
    return (
        len(image.features.levels)
        + (image.features.zk_migration_state != 0)
        + len(image.controllers)
        + len(image.brokers)
        + len(topics.names)
        + topics.partition_count
        + sum(len(values) for values in image.configs.resources.values())
        + sum(len(quotas) for quotas in image.security.quotas.values())
        + (producer_state.next_id != 0)
        + len(image.security.acls)
        + len(image.security.scram)
        + len(image.security.tokens)
        + (image.cluster.highest_broker_epoch != NO_EPOCH)
        + len(producer_state.states)
        + len(producer_state.transactional_ids)
        + len(producer_state.requests)
        + len(image.positions.by_group)
        + (image.source is not None)
    )


def state_digest(image: MetadataImage) -> bytes:
    """Return the BLAKE2b-128 of the canonical native dump, without the provenance."""
    digest = StateDigest()
    for value in dump_values(image.at(Provenance())):
        digest.update(value)
    return digest.value()


class StateDigest:
    """The state digest, computed value by value by a caller that has the encoded dump anyway."""

    __slots__ = ("_hash",)

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=DIGEST_BYTES)

    def update(self, value: bytes) -> None:
        """Add the next value. Lengths are hashed too, so that boundaries count."""
        self._hash.update(len(value).to_bytes(4, "big") + value)

    def update_all(self, values: Iterable[bytes]) -> None:
        """Add values one after the other, as ``update`` does, at less cost for each."""
        pack = _LENGTH.pack
        self._hash.update(b"".join([part for each in values for part in (pack(len(each)), each)]))

    def value(self) -> bytes:
        """Return the digest of everything added so far, ``DIGEST_BYTES`` long."""
        return self._hash.digest()


class DigestedValues:
    """A checkpoint's values, digested while they are written.

    Iterate once; ``digest`` is valid when the iteration has ended. In the kafka codec the
    digest is still that of the native dump, and costs a second pass.
    """

    def __init__(self, image: MetadataImage, *, kafka: bool = False) -> None:
        self._image = image
        self._kafka = kafka
        self._digest = StateDigest()

    def __iter__(self) -> Iterator[bytes]:
        if self._kafka:
            yield from dump_values(self._image, kafka=True)
            return
        for value in dump_values(self._image.at(Provenance())):
            self._digest.update(value)
            yield value
        source = self._image.source
        if source is not None:
            record = state_record(source)
            record.extra = self._image.extras.get(IMPORT_KEY)
            yield encode_native(record, 0)

    def digest(self) -> bytes:
        """Return the ``state_digest`` of the image."""
        return state_digest(self._image) if self._kafka else self._digest.value()


def _plain_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    yield from _before_topics(image)
    yield from _topics(image)
    yield from _behind_topics(image)


def _before_topics(image: MetadataImage) -> Iterator[MetadataRecord]:
    yield from _features(image)
    for controller_id in sorted(image.controllers):
        yield controller_record(image.controllers[controller_id])
    for broker_id in sorted(image.brokers):
        yield broker_record(image.brokers[broker_id])


def _behind_topics(image: MetadataImage) -> Iterator[MetadataRecord]:
    yield from _configs(image)
    yield from _quotas(image)
    if image.producers.next_id:
        yield ProducerIdsRecord(-1, -1, image.producers.next_id)
    yield from _security(image)
    yield from _own(image)


def _features(image: MetadataImage) -> Iterator[MetadataRecord]:
    levels = image.features.levels
    for name in sorted(levels, key=lambda name: (name != METADATA_VERSION, name)):
        yield FeatureLevelRecord(name, levels[name])
    if image.features.zk_migration_state:
        yield ZkMigrationStateRecord(image.features.zk_migration_state)


def controller_record(controller: ControllerRegistration) -> RegisterControllerRecord:
    """Return the full record of a controller's registration."""
    return RegisterControllerRecord(
        controller.id,
        controller.incarnation_id,
        controller.zk_migration_ready,
        controller.endpoints,
        controller.features,
    )


def broker_record(broker: BrokerRegistration) -> RegisterBrokerRecord:
    """Return the full record of a broker's registration."""
    return RegisterBrokerRecord(
        broker.id,
        broker.is_migrating,
        broker.incarnation_id,
        broker.epoch,
        broker.endpoints,
        broker.features,
        broker.rack,
        broker.fenced,
        broker.in_controlled_shutdown,
        broker.log_dirs,
        broker.cordoned_log_dirs,
    )


def _topics(image: MetadataImage) -> Iterator[MetadataRecord]:
    topics = image.topics
    for name in sorted(topics.ids):
        topic_id = topics.ids[name]
        yield TopicRecord(name, topic_id)
        yield from _partitions(image, topic_id)


def _partitions(image: MetadataImage, topic_id: Uuid) -> Iterator[PartitionRecord]:
    states = image.topics.partitions_of(topic_id)
    for index in sorted(states):
        yield partitions.record_of(topic_id, index, states[index])


def _configs(image: MetadataImage) -> Iterator[MetadataRecord]:
    resources = image.configs.resources
    for resource in sorted(resources):
        values = resources[resource]
        for name in sorted(values):
            yield ConfigRecord(resource[0], resource[1], name, values[name])


def _quotas(image: MetadataImage) -> Iterator[MetadataRecord]:
    def order(entity: QuotaKey) -> list[tuple[str, bool, str]]:
        return [entity_order(part) for part in entity]

    quotas = image.security.quotas
    for entity in sorted(quotas, key=order):
        values = quotas[entity]
        for key in sorted(values):
            yield ClientQuotaRecord(entity, key, values[key], remove=False)


def _security(image: MetadataImage) -> Iterator[MetadataRecord]:
    security = image.security
    for acl_id in sorted(security.acls):
        yield security.acls[acl_id]
    for user in sorted(security.scram):
        yield security.scram[user]
    for token_id in sorted(security.tokens):
        yield security.tokens[token_id]


def _own(image: MetadataImage) -> Iterator[MetadataRecord]:
    if image.cluster.highest_broker_epoch != NO_EPOCH:
        yield BrokerEpochRecord(image.cluster.highest_broker_epoch)
    states = image.producers.states
    for producer_id in sorted(states):
        yield record_of(producer_id, states[producer_id])
    transactional = image.producers.transactional_ids
    for name in sorted(transactional):
        yield transactional[name]
    requests = image.producers.requests
    for name in sorted(requests):
        yield AnsweredRequestsRecord(name, requests[name])
    positions = image.positions.by_group
    for group in sorted(positions):
        yield positions[group]
    if image.source is not None:
        yield state_record(image.source)

"""Records about topics, partitions, configurations and producer id blocks.

Field order, versions, tags and defaults follow docs/reference/record-types.md (Metadata records).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from quorum.types import ZERO_UUID
from statemachine.records_schema import (
    Int8,
    Int32,
    Int64,
    MetadataRecord,
    Since,
    Tag,
    UuidValue,
    WireStruct,
)

LEADER_UNCHANGED = -2
"""``PartitionChangeRecord.leader`` of a change that leaves leader and leader epoch alone."""

RECOVERY_STATE_UNCHANGED = -1
RECOVERED = 0
RECOVERING = 1

Int32Tuple = tuple[Int32, ...]


@dataclass(slots=True)
class TopicRecord(MetadataRecord):
    """Binds a topic name to an id; comes before the topic's partitions."""

    API_KEY: ClassVar[int] = 2
    IDENTITY = ("topic_id",)
    HISTORY = ("topic", "name")
    name: str = ""
    topic_id: UuidValue = ZERO_UUID


@dataclass(slots=True)
class PartitionRecord(MetadataRecord):
    """The full state of a partition, at its creation and in checkpoints."""

    API_KEY: ClassVar[int] = 3
    VERSION_MAX: ClassVar[int] = 2
    VERSION_STEPS = ((17, 1), (23, 2))
    IDENTITY = ("topic_id", "partition_id")
    HISTORY = ("partition", "partition_id")
    partition_id: Int32 = -1
    topic_id: UuidValue = ZERO_UUID
    replicas: Int32Tuple = ()
    isr: Int32Tuple = ()
    removing_replicas: Int32Tuple = ()
    adding_replicas: Int32Tuple = ()
    leader: Int32 = -1
    leader_recovery_state: Annotated[Int8, Tag(0)] = 0
    leader_epoch: Int32 = -1
    partition_epoch: Int32 = -1
    directories: Annotated[tuple[UuidValue, ...], Since(1)] = ()
    eligible_leader_replicas: Annotated[tuple[Int32, ...] | None, Since(2), Tag(1)] = None
    last_known_elr: Annotated[tuple[Int32, ...] | None, Since(2), Tag(2)] = None


@dataclass(slots=True)
class ConfigRecord(MetadataRecord):
    """Sets one key of one resource, or deletes it when ``value`` is None.

    ``resource_type``: 2 topic, 4 broker (empty name: cluster default), 8 broker logger,
    16 client metrics, 32 group.
    """

    API_KEY: ClassVar[int] = 4
    IDENTITY = ("resource_type", "resource_name", "name")
    HISTORY = ("config_name", "name")
    resource_type: Int8 = 0
    resource_name: str = ""
    name: str = ""
    value: str | None = None


@dataclass(slots=True)
class PartitionChangeRecord(MetadataRecord):
    """A change to a partition. Every one raises the partition epoch by one.

    A ``leader`` other than -2, even the same id, also raises the leader epoch by one.
    Fields left at None or at their "unchanged" value keep what the partition has.
    """

    API_KEY: ClassVar[int] = 5
    VERSION_MAX: ClassVar[int] = 2
    VERSION_STEPS = ((17, 1), (23, 2))
    HISTORY = ("partition", "partition_id")
    partition_id: Int32 = -1
    topic_id: UuidValue = ZERO_UUID
    isr: Annotated[tuple[Int32, ...] | None, Tag(0)] = None
    leader: Annotated[Int32, Tag(1)] = LEADER_UNCHANGED
    replicas: Annotated[tuple[Int32, ...] | None, Tag(2)] = None
    removing_replicas: Annotated[tuple[Int32, ...] | None, Tag(3)] = None
    adding_replicas: Annotated[tuple[Int32, ...] | None, Tag(4)] = None
    leader_recovery_state: Annotated[Int8, Tag(5)] = RECOVERY_STATE_UNCHANGED
    directories: Annotated[tuple[UuidValue, ...] | None, Since(1), Tag(8)] = None
    eligible_leader_replicas: Annotated[tuple[Int32, ...] | None, Since(2), Tag(6)] = None
    last_known_elr: Annotated[tuple[Int32, ...] | None, Since(2), Tag(7)] = None


@dataclass(slots=True)
class RemoveTopicRecord(MetadataRecord):
    """Deletes a topic, its partitions and its configuration."""

    API_KEY: ClassVar[int] = 9
    topic_id: UuidValue = ZERO_UUID


@dataclass(frozen=True, slots=True)
class QuotaEntity(WireStruct):
    """One part of the entity a quota is for; a None name is the default entity."""

    entity_type: str = ""
    entity_name: str | None = None


def entity_order(entity: QuotaEntity) -> tuple[str, bool, str]:
    """Sorting key of one part of a quota's entity; the default entity comes first."""
    return (entity.entity_type, entity.entity_name is not None, entity.entity_name or "")


@dataclass(slots=True)
class ClientQuotaRecord(MetadataRecord):
    """Sets or removes one quota key of an entity."""

    API_KEY: ClassVar[int] = 14
    IDENTITY = ("sorted_entity", "key")
    entity: tuple[QuotaEntity, ...] = ()
    key: str = ""
    value: float = 0.0
    remove: bool = False

    @property
    def sorted_entity(self) -> tuple[QuotaEntity, ...]:
        """The parts of the entity in canonical order."""
        return tuple(sorted(self.entity, key=entity_order))


@dataclass(slots=True)
class ProducerIdsRecord(MetadataRecord):
    """Producer ids below ``next_producer_id`` have been handed out."""

    API_KEY: ClassVar[int] = 15
    IDENTITY = ()
    broker_id: Int32 = 0
    broker_epoch: Int64 = -1
    next_producer_id: Int64 = 0


@dataclass(slots=True)
class ClearElrRecord(MetadataRecord):
    """Empties ELR and last-known ELR of one topic, or of all when the name is empty."""

    API_KEY: ClassVar[int] = 28
    HISTORY = ("topic", "topic_name")
    topic_name: str = ""

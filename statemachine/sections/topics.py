"""Topics and their partitions: image and lookups.

``TopicsView`` are the lookups; the image and a delta in progress (``topics_delta``) both have them.

Invariants:
    1. Names and ids are a bijection.
    2. Partitions exist only for topics that exist.
    3. The indexes by broker agree exactly with the partitions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from immutables import Map

from quorum.types import NO_NODE, Uuid
from statemachine.sections.broker_words import BrokerPartitions, no_partitions
from statemachine.sections.map_delta import EMPTY_MAP, ReadMap
from statemachine.sections.name_changes import NameChanges
from statemachine.sections.partition_index import PartitionSet
from statemachine.sections.partitions import PartitionState

_NO_PARTITIONS: Map[int, PartitionState] = EMPTY_MAP


class TopicsView(Protocol):
    """Lookups that the topics image and a delta over it answer alike."""

    @property
    def ids(self) -> ReadMap[str, Uuid]:
        """Topic id by name."""

    @property
    def names(self) -> ReadMap[Uuid, str]:
        """Topic name by id."""

    def id_of(self, name: str) -> Uuid | None:
        """Return the id of the topic with that name."""

    def name_of(self, topic_id: Uuid) -> str | None:
        """Return the name of the topic with that id."""

    def partition(self, topic_id: Uuid, index: int) -> PartitionState | None:
        """Return one partition's state."""

    def partitions_of(self, topic_id: Uuid) -> Map[int, PartitionState]:
        """Return all partitions of a topic by number; empty for an unknown topic."""

    def in_isr_of(self, broker_id: int) -> PartitionSet:
        """Return the partitions whose ISR contains the broker."""

    def led_by(self, broker_id: int) -> PartitionSet:
        """Return the partitions that the broker leads; for ``NO_NODE``, those without a leader."""

    def eligible_of(self, broker_id: int) -> PartitionSet:
        """Return the partitions whose ELR contains the broker."""

    def leads_any(self, broker_id: int) -> bool:
        """Whether the broker leads at least one partition."""

    def without_leader(self) -> PartitionSet:
        """Return the partitions that have no leader now."""


@dataclass(frozen=True, slots=True)
class TopicsImage:
    """Topics and partitions at one position. The partitions determine the indexes."""

    ids: Map[str, Uuid] = EMPTY_MAP
    names: Map[Uuid, str] = field(default=EMPTY_MAP, compare=False)
    partitions: Map[Uuid, Map[int, PartitionState]] = EMPTY_MAP
    isr_index: BrokerPartitions = field(default_factory=no_partitions, compare=False, repr=False)
    leader_index: BrokerPartitions = field(default_factory=no_partitions, compare=False, repr=False)
    elr_index: BrokerPartitions = field(default_factory=no_partitions, compare=False, repr=False)
    name_changes: NameChanges = field(default_factory=NameChanges, compare=False, repr=False)
    partition_count: int = field(default=0, compare=False)
    """The number of partitions of all topics."""

    def id_of(self, name: str) -> Uuid | None:
        """Return the id of the topic with that name."""
        return self.ids.get(name)

    def name_of(self, topic_id: Uuid) -> str | None:
        """Return the name of the topic with that id."""
        return self.names.get(topic_id)

    def partition(self, topic_id: Uuid, index: int) -> PartitionState | None:
        """Return one partition's state."""
        return self.partitions.get(topic_id, _NO_PARTITIONS).get(index)

    def partitions_of(self, topic_id: Uuid) -> Map[int, PartitionState]:
        """Return all partitions of a topic by number; empty for an unknown topic."""
        return self.partitions.get(topic_id, _NO_PARTITIONS)

    def in_isr_of(self, broker_id: int) -> PartitionSet:
        """Return the partitions whose ISR contains the broker."""
        return PartitionSet(self.isr_index.of(broker_id).all())

    def led_by(self, broker_id: int) -> PartitionSet:
        """Return the partitions that the broker leads."""
        return PartitionSet(self.leader_index.of(broker_id).all())

    def eligible_of(self, broker_id: int) -> PartitionSet:
        """Return the partitions whose ELR contains the broker."""
        return PartitionSet(self.elr_index.of(broker_id).all())

    def leads_any(self, broker_id: int) -> bool:
        """Whether the broker leads at least one partition."""
        return broker_id in self.leader_index

    def without_leader(self) -> PartitionSet:
        """Return the partitions that have no leader now."""
        return self.led_by(NO_NODE)

"""Topics and their partitions: image, lookups, delta and replay.

``TopicsView`` holds the lookups; they work alike on the image and on a delta in progress.

Invariants:
    1. Names and ids are a bijection.
    2. Partitions exist only for topics that exist.
    3. The indexes by broker agree exactly with the partitions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from immutables import Map

from quorum.errors import ReplayError
from quorum.types import NO_NODE, Uuid, uuid_to_text
from statemachine.records import (
    ClearElrRecord,
    Extra,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
)
from statemachine.sections.broker_words import BrokerPartitions, no_partitions
from statemachine.sections.map_delta import EMPTY_MAP, MapDelta, NestedMapDelta, ReadMap
from statemachine.sections.partition_index import (
    IndexMoves,
    PartitionIndexDelta,
    PartitionSet,
    index_of,
)
from statemachine.sections.partitions import (
    AlikeChange,
    IndexMove,
    PartitionState,
    alike_key,
    changed_state,
    state_of,
)
from statemachine.sections.tracking import ChangeTracker

_Derived: TypeAlias = tuple[PartitionState, PartitionState | None, tuple[IndexMove, ...]]
"""A state, what it becomes (None: it does not change), and the moves."""
_TOPIC = TopicRecord.API_KEY
_PARTITION = PartitionRecord.API_KEY
_NO_PARTITIONS: Map[int, PartitionState] = EMPTY_MAP


class DerivedChanges(Protocol):
    """The changes of one event in one topic (``statemachine.derivation``)."""

    known: dict[tuple[object, ...], AlikeChange | None]
    """What ``of`` has found so far, by ``alike_key``."""

    def of(self, state: PartitionState) -> AlikeChange | None:
        """Return the change of a partition in this state, or None if there is none."""


class TopicsView(ABC):
    """Lookups that the topics image and a delta over it answer alike."""

    __slots__ = ()

    ids: ReadMap[str, Uuid]
    """Topic id by name."""
    names: ReadMap[Uuid, str]
    """Topic name by id."""

    def id_of(self, name: str) -> Uuid | None:
        """Return the id of the topic with that name."""
        return self.ids.get(name)

    def name_of(self, topic_id: Uuid) -> str | None:
        """Return the name of the topic with that id."""
        return self.names.get(topic_id)

    @abstractmethod
    def partition(self, topic_id: Uuid, index: int) -> PartitionState | None:
        """Return one partition's state."""

    @abstractmethod
    def partitions_of(self, topic_id: Uuid) -> Map[int, PartitionState]:
        """Return all partitions of a topic by number; empty for an unknown topic."""

    @abstractmethod
    def in_isr_of(self, broker_id: int) -> PartitionSet:
        """Return the partitions whose ISR contains the broker."""

    @abstractmethod
    def led_by(self, broker_id: int) -> PartitionSet:
        """Return the partitions that the broker leads; for ``NO_NODE``, those without a leader."""

    @abstractmethod
    def eligible_of(self, broker_id: int) -> PartitionSet:
        """Return the partitions whose ELR contains the broker."""

    @abstractmethod
    def leads_any(self, broker_id: int) -> bool:
        """Whether the broker leads at least one partition."""

    def without_leader(self) -> PartitionSet:
        """Return the partitions that have no leader now."""
        return self.led_by(NO_NODE)


@dataclass(frozen=True, slots=True)
class TopicsImage(TopicsView):
    """Topics and partitions at one position. The partitions determine the indexes."""

    ids: Map[str, Uuid] = EMPTY_MAP
    names: Map[Uuid, str] = field(default=EMPTY_MAP, compare=False)
    partitions: Map[Uuid, Map[int, PartitionState]] = EMPTY_MAP
    isr_index: BrokerPartitions = field(default_factory=no_partitions, compare=False, repr=False)
    leader_index: BrokerPartitions = field(default_factory=no_partitions, compare=False, repr=False)
    elr_index: BrokerPartitions = field(default_factory=no_partitions, compare=False, repr=False)

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

    def partition_count(self) -> int:
        """Return the number of partitions of all topics, in time linear in the topics."""
        return sum(len(partitions) for partitions in self.partitions.values())


class TopicsDelta(TopicsView):
    """Topics and partitions under change."""

    __slots__ = ("_index", "_partitions", "_tracker", "ids", "names")

    def __init__(self, base: TopicsImage, tracker: ChangeTracker) -> None:
        self.ids: MapDelta[str, Uuid] = MapDelta(base.ids)
        self.names: MapDelta[Uuid, str] = MapDelta(base.names)
        self._partitions: NestedMapDelta[Uuid, int, PartitionState] = NestedMapDelta(
            base.partitions
        )
        # Without partitions before, as when a checkpoint is loaded, they are indexed all at once
        # when the index is first needed.
        self._index = (
            PartitionIndexDelta(base.isr_index, base.leader_index, base.elr_index)
            if base.partitions
            else None
        )
        self._tracker = tracker

    def partition(self, topic_id: Uuid, index: int) -> PartitionState | None:
        """Return one partition's state."""
        return self._partitions.find(topic_id, index)

    def partitions_of(self, topic_id: Uuid) -> Map[int, PartitionState]:
        """Return all partitions of a topic by number; empty for an unknown topic."""
        return self._partitions.group(topic_id)

    def in_isr_of(self, broker_id: int) -> PartitionSet:
        """Return the partitions whose ISR contains the broker."""
        return PartitionSet(self._indexed().isr.words(broker_id))

    def led_by(self, broker_id: int) -> PartitionSet:
        """Return the partitions that the broker leads."""
        return PartitionSet(self._indexed().leader.words(broker_id))

    def eligible_of(self, broker_id: int) -> PartitionSet:
        """Return the partitions whose ELR contains the broker."""
        return PartitionSet(self._indexed().elr.words(broker_id))

    def leads_any(self, broker_id: int) -> bool:
        """Whether the broker leads at least one partition."""
        return self._indexed().leader.has(broker_id)

    def settle(self) -> TopicsImage:
        """Return the image as of now; the delta stays usable."""
        index = self._indexed()
        return TopicsImage(
            self.ids.settle(),
            self.names.settle(),
            self._partitions.settle(),
            index.isr.settle(),
            index.leader.settle(),
            index.elr.settle(),
        )

    def replay_topic(self, record: TopicRecord) -> None:
        """Create a topic.

        Raises:
            ReplayError: Another topic has the name or the id.
        """
        name, topic_id = record.name, record.topic_id
        if self.ids.get(name, topic_id) != topic_id or self.names.get(topic_id, name) != name:
            raise ReplayError(
                f"topic {name!r} with id {uuid_to_text(topic_id)} clashes with "
                f"{self.names.get(topic_id)!r}"
            )
        existed = topic_id in self.names
        self.ids.set(name, topic_id)
        self.names.set(topic_id, name)
        self._tracker.stored((_TOPIC, topic_id), record.extra, existed=existed)

    def replay_partition(self, record: PartitionRecord) -> None:
        """Create a partition, or replace its state.

        Raises:
            ReplayError: Its topic does not exist, or its number is negative.
        """
        topic_id, index = record.topic_id, record.partition_id
        if topic_id not in self.names or index < 0:
            raise ReplayError(f"partition {index} of no topic: {uuid_to_text(topic_id)}")
        self._store(topic_id, index, state_of(record), record.extra)

    def replay_partitions(self, topic_id: Uuid, states: Mapping[int, PartitionState]) -> None:
        """Do what ``replay_partition`` does for many partitions of a topic, in the same order.

        No number is negative, no record has unknown fields.

        Raises:
            ReplayError: The topic does not exist; nothing has changed.
        """
        if topic_id not in self.names:
            first = next(iter(states))
            raise ReplayError(f"partition {first} of no topic: {uuid_to_text(topic_id)}")
        partitions = self._partitions.open_group(topic_id)
        if partitions:
            for index, state in states.items():
                self._store(topic_id, index, state, None)
            return
        partitions.update(states)
        if self._index is not None:
            self._index.added_topic(topic_id, states)

    def _store(
        self, topic_id: Uuid, index: int, state: PartitionState, extra: Extra | None
    ) -> None:
        partitions = self._partitions.open_group(topic_id)
        old = partitions.get(index)
        partitions[index] = state
        if old is None:
            if self._index is not None:
                self._index.added((topic_id, index), state)
        elif old != state:
            if self._index is not None:
                self._index.changed((topic_id, index), old, state)
            self._tracker.modified((_PARTITION, topic_id, index))
        tracker = self._tracker
        if extra is not None or tracker.extras:
            tracker.stored((_PARTITION, topic_id, index), extra, existed=old is not None)

    def may_load(self, topic_id: Uuid) -> bool:
        """Whether ``load_partitions`` may be called for a topic.

        It exists, the indexes are not made yet, and no record has unknown fields.
        """
        return self._index is None and topic_id in self.names and not self._tracker.extras

    def load_partitions(self, topic_id: Uuid, states: Mapping[int, PartitionState]) -> None:
        """Store many partitions of a topic of a checkpoint, as ``replay_partition`` does.

        ``may_load`` has just been true; no number is negative, no record has unknown fields. What
        is replaced does not count as a change (630.4): loading begins the count anew.
        """
        self._partitions.open_group(topic_id).update(states)

    def replay_change(self, change: PartitionChangeRecord) -> None:
        """Change a partition; its partition epoch always rises.

        Raises:
            ReplayError: There is no such partition.
        """
        topic_id, index = change.topic_id, change.partition_id
        old = self._partitions.find(topic_id, index)
        if old is None:
            raise ReplayError(f"change to no partition: {uuid_to_text(topic_id)}-{index}")
        self._replace(topic_id, index, old, changed_state(old, change))

    def replay_derived(
        self, affected: PartitionSet, changes_in: Callable[[Uuid], DerivedChanges]
    ) -> None:
        """Change many partitions, each as ``replay_change`` does.

        ``changes_in`` returns a topic's changes: None for a partition that does not change.
        """
        partitions, modified = self._partitions, self._tracker.modified
        store = IndexMoves(self._indexed()).store
        # Many partitions share one state. Its change is found once for all topics with the same
        # settings: by its identity, which is its own as long as it is kept here.
        by_settings: dict[int, dict[int, _Derived]] = {}
        for word, topic_id, first, bits in affected.words():
            of_topic = changes_in(topic_id)
            known = of_topic.known
            shared = by_settings.setdefault(id(known), {})
            states = partitions.present(topic_id)
            moves: dict[IndexMove, int] = {}
            opened = None
            while bits:
                bit = bits & -bits
                bits ^= bit
                number = first + bit.bit_length() - 1
                old = states.get(number)
                if old is None:
                    continue
                derived = shared.get(id(old))
                if derived is None:
                    key = alike_key(old)
                    change = known[key] if key in known else of_topic.of(old)
                    derived = shared[id(old)] = (
                        (old, None, ())
                        if change is None
                        else (old, change.applied_to(old), change.moves)
                    )
                _, new, its_moves = derived
                if new is None:
                    continue
                if opened is None:
                    states = opened = partitions.open_present(topic_id, states)
                opened[number] = new
                modified((_PARTITION, topic_id, number))
                for move in its_moves:
                    moves[move] = moves.get(move, 0) | bit
            if moves:
                store(word, moves)

    def replay_removal(self, topic_id: Uuid) -> str:
        """Delete a topic and its partitions; return the name it had.

        Raises:
            ReplayError: There is no such topic.
        """
        if topic_id not in self.names:
            raise ReplayError(f"removal of no topic: {uuid_to_text(topic_id)}")
        name = self.names.pop(topic_id)
        self.ids.pop(name)
        for index, state in self._partitions.drop_group(topic_id).items():
            if self._index is not None:
                self._index.removed((topic_id, index), state)
            self._tracker.deleted((_PARTITION, topic_id, index))
        self._tracker.deleted((_TOPIC, topic_id))
        return name

    def replay_clear_elr(self, record: ClearElrRecord) -> None:
        """Empty ELR and last-known ELR of one topic, or of all when no name is given.

        Epochs do not change: KIP-966 treats this as a reset, not as a partition change.

        Raises:
            ReplayError: The named topic does not exist.
        """
        if not record.topic_name:
            for topic_id in self._partitions.groups():
                self._clear_elr(topic_id)
            return
        named = self.ids.get(record.topic_name)
        if named is None:
            raise ReplayError(f"ELR cleared of no topic: {record.topic_name!r}")
        self._clear_elr(named)

    def _clear_elr(self, topic_id: Uuid) -> None:
        for index, old in self._partitions.group(topic_id).items():
            if old.elr or old.last_known_elr:
                self._replace(topic_id, index, old, old._replace(elr=(), last_known_elr=()))

    def _replace(
        self, topic_id: Uuid, index: int, old: PartitionState, new: PartitionState
    ) -> None:
        key = (topic_id, index)
        self._partitions.open_group(topic_id)[index] = new
        if self._index is not None:
            self._index.changed(key, old, new)
        self._tracker.modified((_PARTITION, topic_id, index))

    def _indexed(self) -> PartitionIndexDelta:
        index = self._index
        if index is None:
            index = self._index = index_of(self._partitions.settle())
        return index

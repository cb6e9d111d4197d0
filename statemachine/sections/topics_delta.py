"""Topics and their partitions under change: the effect of each record on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias, cast

from immutables import Map, MapMutation

from quorum.errors import ReplayError
from quorum.types import NO_NODE, Uuid, uuid_to_text
from statemachine.records import (
    ClearElrRecord,
    Extra,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
)
from statemachine.sections.map_delta import MapDelta, NestedMapDelta
from statemachine.sections.name_changes import NameChanges
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
from statemachine.sections.topics import TopicsImage
from statemachine.sections.tracking import ChangeTracker

_Derived: TypeAlias = tuple[PartitionState, PartitionState | None, tuple[IndexMove, ...]]
"""A state, what it becomes (None: it does not change), and the moves."""
_TOPIC = TopicRecord.API_KEY
_PARTITION = PartitionRecord.API_KEY


class PartitionMaps(Protocol):
    """Partitions by topic and number, under change; ``NestedMapDelta`` has these methods."""

    def find(self, group: Uuid, key: int, /) -> PartitionState | None:
        """Return one partition as of now, or None."""

    def group(self, group: Uuid, /) -> Map[int, PartitionState]:
        """Return the partitions of a topic as of now."""

    def groups(self) -> list[Uuid]:
        """Return every topic with partitions, in no particular order."""

    def open_group(
        self, group: Uuid, /
    ) -> MapMutation[int, PartitionState] | dict[int, PartitionState]:
        """Return the partitions of a topic, opened for changing."""

    def drop_group(self, group: Uuid, /) -> Map[int, PartitionState]:
        """Remove the partitions of a topic and return them."""

    def settle(self) -> Map[Uuid, Map[int, PartitionState]]:
        """Return the immutable map of maps as of now."""


class DerivedChanges(Protocol):
    """The changes of one event in one topic (``statemachine.derivation``)."""

    known: dict[tuple[object, ...], AlikeChange | None]
    """What ``of`` has found so far, by ``alike_key``."""

    def of(self, state: PartitionState) -> AlikeChange | None:
        """Return the change of a partition in this state, or None if there is none."""


class TopicsDelta:
    """Topics and partitions under change."""

    __slots__ = (
        "_changed_names",
        "_index",
        "_name_changes",
        "_partition_count",
        "_partitions",
        "_tracker",
        "ids",
        "names",
    )

    def __init__(self, base: TopicsImage, tracker: ChangeTracker) -> None:
        self.ids: MapDelta[str, Uuid] = MapDelta(base.ids)
        self.names: MapDelta[Uuid, str] = MapDelta(base.names)
        # Every checkpoint is loaded into the empty image: the names of two of them have nothing in
        # common.
        self._name_changes = base.name_changes if base.ids else NameChanges()
        self._changed_names: list[str] = []
        self._partition_count = base.partition_count
        self._partitions: PartitionMaps = NestedMapDelta(base.partitions)
        # Without partitions before, as when a checkpoint is loaded, they are indexed all at once
        # when the index is first needed.
        self._index = (
            PartitionIndexDelta(base.isr_index, base.leader_index, base.elr_index)
            if base.partitions
            else None
        )
        self._tracker = tracker

    def id_of(self, name: str) -> Uuid | None:
        """Return the id of the topic with that name."""
        return self.ids.get(name)

    def name_of(self, topic_id: Uuid) -> str | None:
        """Return the name of the topic with that id."""
        return self.names.get(topic_id)

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

    def without_leader(self) -> PartitionSet:
        """Return the partitions that have no leader now."""
        return self.led_by(NO_NODE)

    def settle(self) -> TopicsImage:
        """Return the image as of now; the delta stays usable."""
        index = self._indexed()
        if self._changed_names:
            self._name_changes = self._name_changes.followed_by(self._changed_names)
            self._changed_names = []
        return TopicsImage(
            self.ids.settle(),
            self.names.settle(),
            self._partitions.settle(),
            index.isr.settle(),
            index.leader.settle(),
            index.elr.settle(),
            self._name_changes,
            self._partition_count,
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
        self._changed_names.append(name)
        self._tracker.stored((_TOPIC, topic_id), record.extra, existed=existed)

    def replay_partition(
        self, topic_id: Uuid, index: int, record: PartitionRecord
    ) -> PartitionState:
        """Create a partition, or replace its state, as any partition's record says; return it.

        Raises:
            ReplayError: Its topic does not exist, or its number is negative.
        """
        if topic_id not in self.names or index < 0:
            raise ReplayError(f"partition {index} of no topic: {uuid_to_text(topic_id)}")
        state = state_of(record)
        self._store(topic_id, index, state, record.extra)
        return state

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
        self._partition_count += len(states)
        if self._index is not None:
            self._index.added_topic(topic_id, states)

    def _store(
        self, topic_id: Uuid, index: int, state: PartitionState, extra: Extra | None
    ) -> None:
        partitions = self._partitions.open_group(topic_id)
        old = partitions.get(index)
        partitions[index] = state
        if old is None:
            self._partition_count += 1
            if self._index is not None:
                self._index.added((topic_id, index), state)
        elif old != state:
            if self._index is not None:
                self._index.changed((topic_id, index), old, state)
            self._tracker.modified((_PARTITION, topic_id, index))
        if extra is not None or self._tracker.extras:
            self._tracker.stored((_PARTITION, topic_id, index), extra, existed=old is not None)

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
        partitions = self._partitions.open_group(topic_id)
        before = len(partitions)
        partitions.update(states)
        self._partition_count += len(partitions) - before

    def replay_change(
        self, topic_id: Uuid, index: int, change: PartitionChangeRecord
    ) -> PartitionState:
        """Change a partition as any partition's record says; its epoch always rises. Return it.

        Raises:
            ReplayError: There is no such partition.
        """
        old = self._partitions.find(topic_id, index)
        if old is None:
            raise ReplayError(f"change to no partition: {uuid_to_text(topic_id)}-{index}")
        state = changed_state(old, change)
        self._replace(topic_id, index, old, state)
        return state

    def replay_derived(
        self, affected: PartitionSet, changes_in: Callable[[Uuid], DerivedChanges]
    ) -> None:
        """Change many partitions, each as ``replay_change`` does.

        ``changes_in`` returns a topic's changes: None for a partition that does not change.
        """
        # A subclass with other maps overrides this method.
        partitions = cast("NestedMapDelta[Uuid, int, PartitionState]", self._partitions)
        modified = self._tracker.modified
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
        self._changed_names.append(name)
        states = self._partitions.drop_group(topic_id)
        self._partition_count -= len(states)
        if self._index is not None:
            self._index.removed_topic(topic_id, states)
        self._tracker.all_deleted([(_PARTITION, topic_id, index) for index in states])
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
        if record.topic_name not in self.ids:
            raise ReplayError(f"ELR cleared of no topic: {record.topic_name!r}")
        self._clear_elr(self.ids[record.topic_name])

    def _clear_elr(self, topic_id: Uuid) -> None:
        for index, old in self._partitions.group(topic_id).items():
            if old.elr or old.last_known_elr:
                self._replace(topic_id, index, old, old._replace(elr=(), last_known_elr=()))

    def _replace(
        self, topic_id: Uuid, index: int, old: PartitionState, new: PartitionState
    ) -> None:
        self._partitions.open_group(topic_id)[index] = new
        if self._index is not None:
            self._index.changed((topic_id, index), old, new)
        self._tracker.modified((_PARTITION, topic_id, index))

    def _indexed(self) -> PartitionIndexDelta:
        if self._index is None:
            self._index = index_of(self._partitions.settle())
        return self._index

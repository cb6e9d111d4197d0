"""Topics under change for a reader of a log, which looks partitions up by broker only rarely.

A replica keeps indexes by broker at every change, because a broker event may come next, and an
image is published after each group. A reader asks for them at broker events only. So partitions
are plain dictionaries here, and all of them are scanned then. Beyond ``SCANNED_MAX`` partitions the
indexes are kept, as everywhere. The effect of each record is that of ``TopicsDelta``.

What changed since the base is not tracked: nobody writes a checkpoint from here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from immutables import Map

from quorum.types import NO_NODE, Uuid
from statemachine.records import PartitionChangeRecord, PartitionRecord
from statemachine.sections.map_delta import EMPTY_MAP
from statemachine.sections.partition_index import PartitionIndexDelta, PartitionSet, place
from statemachine.sections.partitions import (
    ELR_INDEX,
    ISR_INDEX,
    LEADER_INDEX,
    PartitionState,
    changed_state,
)
from statemachine.sections.topics import TopicsImage
from statemachine.sections.topics_delta import DerivedChanges, TopicsDelta
from statemachine.sections.tracking import ChangeTracker

SCANNED_MAX = 20_000
"""Most partitions that are scanned for each broker event, which takes some milliseconds."""

_KINDS = (ISR_INDEX, LEADER_INDEX, ELR_INDEX)
_Groups = dict[Uuid, dict[int, PartitionState]]


class ScannedTopics(TopicsDelta):
    """Topics and partitions under change, with lookups by broker that take time."""

    __slots__ = ("_flat", "_found")

    def __init__(self, base: TopicsImage, tracker: ChangeTracker) -> None:
        super().__init__(base, tracker)
        self._index = None
        self._flat = _FlatGroups(base.partitions)
        self._found: dict[int, tuple[PartitionSet, ...]] = {}
        """What was scanned since the last change, by broker: a set per index."""
        # The same calls on dictionaries.
        self._partitions = self._flat

    def in_isr_of(self, broker_id: int) -> PartitionSet:
        """Return the partitions whose ISR contains the broker."""
        if self._is_indexed():
            return super().in_isr_of(broker_id)
        return self._scanned(broker_id)[ISR_INDEX]

    def led_by(self, broker_id: int) -> PartitionSet:
        """Return the partitions that the broker leads."""
        if self._is_indexed():
            return super().led_by(broker_id)
        return self._scanned(broker_id)[LEADER_INDEX]

    def without_leader(self) -> PartitionSet:
        """Return the partitions that have no leader now."""
        if self._is_indexed():
            return super().without_leader()
        words: dict[bytes, int] = {}
        for topic_id, states in self._flat.groups_by_id.items():
            for number, state in states.items():
                if state.leader == NO_NODE:
                    word, bit = place((topic_id, number))
                    words[word] = words.get(word, 0) | bit
        return PartitionSet(words)

    def eligible_of(self, broker_id: int) -> PartitionSet:
        """Return the partitions whose ELR contains the broker."""
        if self._is_indexed():
            return super().eligible_of(broker_id)
        return self._scanned(broker_id)[ELR_INDEX]

    def leads_any(self, broker_id: int) -> bool:
        """Whether the broker leads at least one partition."""
        return bool(self.led_by(broker_id))

    def replay_derived(
        self, affected: PartitionSet, changes_in: Callable[[Uuid], DerivedChanges]
    ) -> None:
        """Change many partitions, each as ``replay_change`` does."""
        for topic_id, number in affected:
            old = self._flat.find(topic_id, number)
            change = None if old is None else changes_in(topic_id).of(old)
            if old is not None and change is not None:
                self._replace(topic_id, number, old, change.applied_to(old))

    def replay_partition(
        self, topic_id: Uuid, index: int, record: PartitionRecord
    ) -> PartitionState:
        """Create a partition, or replace its state; return the state."""
        self._found.clear()
        return super().replay_partition(topic_id, index, record)

    def replay_partitions(self, topic_id: Uuid, states: Mapping[int, PartitionState]) -> None:
        """Do what ``replay_partition`` does for many partitions of a topic."""
        self._found.clear()
        super().replay_partitions(topic_id, states)

    def replay_removal(self, topic_id: Uuid) -> str:
        """Delete a topic and its partitions; return the name it had."""
        self._found.clear()
        return super().replay_removal(topic_id)

    def replay_change(
        self, topic_id: Uuid, index: int, change: PartitionChangeRecord
    ) -> PartitionState:
        """Change a partition; return the new state."""
        states = self._flat.groups_by_id.get(topic_id)
        old = None if states is None else states.get(index)
        if states is None or old is None:
            return super().replay_change(topic_id, index, change)  # It refuses.
        # Nearly all records of a log: what ``_replace`` does, without a call.
        state = changed_state(old, change)
        states[index] = state
        if self._found:
            self._found.clear()
        if self._index is not None:
            self._index.changed((topic_id, index), old, state)
        return state

    def _replace(
        self, topic_id: Uuid, index: int, old: PartitionState, new: PartitionState
    ) -> None:
        if self._found:
            self._found.clear()
        self._flat.groups_by_id[topic_id][index] = new
        if self._index is not None:
            self._index.changed((topic_id, index), old, new)

    def _is_indexed(self) -> bool:
        groups = self._flat.groups_by_id
        return self._index is not None or sum(map(len, groups.values())) > SCANNED_MAX

    def _indexed(self) -> PartitionIndexDelta:
        index = super()._indexed()
        if sum(map(len, self._flat.groups_by_id.values())) <= SCANNED_MAX:
            # An image was asked for: it has the indexes, and they are not kept.
            self._index = None
        return index

    def _scanned(self, broker_id: int) -> tuple[PartitionSet, ...]:
        """Return the broker's sets of all indexes: an event asks for several of them."""
        known = self._found.get(broker_id)
        if known is not None:
            return known
        words: tuple[dict[bytes, int], ...] = ({}, {}, {})
        for topic_id, states in self._flat.groups_by_id.items():
            for number, state in states.items():
                has = (broker_id in state.isr, state.leader == broker_id, broker_id in state.elr)
                if True in has:
                    word, bit = place((topic_id, number))
                    for kind in _KINDS:
                        if has[kind]:
                            words[kind][word] = words[kind].get(word, 0) | bit
        found = self._found[broker_id] = tuple(map(PartitionSet, words))
        return found


class _FlatGroups:
    """A map of maps being changed, as ``NestedMapDelta``, of plain dictionaries."""

    def __init__(self, base: Map[Uuid, Map[int, PartitionState]]) -> None:
        self.groups_by_id: _Groups = {group: dict(states) for group, states in base.items()}

    def find(self, group: Uuid, key: int) -> PartitionState | None:
        found = self.groups_by_id.get(group)
        return None if found is None else found.get(key)

    def group(self, group: Uuid) -> Map[int, PartitionState]:
        found = self.groups_by_id.get(group)
        return Map(found) if found else EMPTY_MAP

    def groups(self) -> list[Uuid]:
        return [group for group, states in self.groups_by_id.items() if states]

    def open_group(self, group: Uuid) -> dict[int, PartitionState]:
        return self.groups_by_id.setdefault(group, {})

    def drop_group(self, group: Uuid) -> Map[int, PartitionState]:
        held = self.group(group)
        self.groups_by_id.pop(group, None)
        return held

    def settle(self) -> Map[Uuid, Map[int, PartitionState]]:
        found: Map[Uuid, Any] = Map(
            {group: Map(states) for group, states in self.groups_by_id.items() if states}
        )
        return found if found else EMPTY_MAP

"""Indexes by broker: the partitions whose ISR or ELR contains it, and those it leads.

They make the cost of fencing a broker proportional to its own partitions, not to the cluster's.
The partitions determine them fully, so they are never compared or dumped.

A broker of a large cluster has tens of thousands of partitions in each index, but few of them in
one topic. So partitions are kept as bits: 1,024 consecutive numbers of one topic share an integer.
That takes about a fifth of the memory of a set of partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from immutables import Map, MapMutation

from quorum.types import Uuid
from statemachine.sections.broker_words import (
    GONE,
    NO_PARTITIONS,
    BrokerPartitions,
    BrokerWordsDelta,
)
from statemachine.sections.partitions import IndexMove, PartitionState

PartitionKey: TypeAlias = tuple[Uuid, int]
"""Topic id and partition number."""

_WORD_BITS = 10
_WORD = 1 << _WORD_BITS
_UUID_BYTES = 16


class PartitionSet:
    """A read-only set of partitions, in the order of topic ids and then of numbers.

    A key of ``words`` is a topic id, followed by the number of the word in four bytes unless it is
    0; so keys sort as partitions do. Bit ``n`` of word ``w`` is the partition ``w * 1024 + n``.
    """

    __slots__ = ("_words",)

    def __init__(self, words: Mapping[bytes, int]) -> None:
        self._words = words

    def __iter__(self) -> Iterator[PartitionKey]:
        for _, topic_id, first, bits in self.words():
            while bits:
                lowest = bits & -bits
                yield topic_id, first + lowest.bit_length() - 1
                bits ^= lowest

    def words(self) -> Iterator[tuple[bytes, Uuid, int, int]]:
        """Yield each word in order: key, topic id, the partition number of bit 0, bits."""
        words = self._words
        for key in sorted(words):
            topic_id = key if len(key) == _UUID_BYTES else key[:_UUID_BYTES]
            yield key, topic_id, int.from_bytes(key[_UUID_BYTES:], "big") << _WORD_BITS, words[key]

    def __bool__(self) -> bool:
        return bool(self._words)

    def __len__(self) -> int:
        """Return the number of partitions, in time linear in the topics."""
        return sum([bits.bit_count() for bits in self._words.values()])

    def __or__(self, other: PartitionSet) -> PartitionSet:
        return union((self, other))

    def items(self) -> Iterable[tuple[bytes, int]]:
        """Return the words and their keys, in no particular order."""
        return self._words.items()

    def between(self, start: Uuid, end: Uuid) -> PartitionSet:
        """Return the partitions of topics with an id from ``start`` on and below ``end``."""
        # Most words are elsewhere: only the keys of those are read.
        words = self._words
        return PartitionSet({key: words[key] for key in words if start <= key < end})

    def bounds(self, step: int) -> list[Uuid]:
        """Return topic ids in order that cut the set into parts of about ``step`` partitions.

        Each part but the last has so many or, where a topic has more, those of its last topic too.
        """
        words = dict(self._words.items())
        found: list[Uuid] = []
        count = 0
        previous = b""
        for key in sorted(words):
            if count >= step and not (previous and key.startswith(previous)):
                found.append(key[:_UUID_BYTES])
                count = 0
            previous = key[:_UUID_BYTES]
            count += words[key].bit_count()
        return found

    def last_topic(self) -> Uuid | None:
        """Return the highest topic id, None if the set is empty."""
        last = max(self._words, default=None)
        return None if last is None else last[:_UUID_BYTES]


def union(sets: Sequence[PartitionSet]) -> PartitionSet:
    """Return the partitions that are in any of the sets."""
    found = dict(sets[0].items())
    for each in sets[1:]:
        for key, bits in each.items():
            found[key] = found.get(key, 0) | bits
    return PartitionSet(found)


class _SharedWord:
    """The first word of topics with the same placement."""

    __slots__ = ("_states", "isr", "isr_gone", "leader", "leader_gone")

    def __init__(
        self,
        isr: Mapping[int, int],
        leader: Mapping[int, int],
        states: tuple[PartitionState, ...],
    ) -> None:
        self.isr = isr
        self.leader = leader
        self.isr_gone = dict.fromkeys(isr, GONE)
        self.leader_gone = dict.fromkeys(leader, GONE)
        self._states = states
        """Kept, so that no other state gets the identity of one of them."""


_SHARED_MAX = 1 << 10
"""Placements that are remembered. When they are that many, all are forgotten."""
_SHARED_PARTITIONS_MAX = 64
"""Topics with more partitions are not looked up."""
_shared: dict[tuple[int, ...], _SharedWord] = {}


def _alike(states: Mapping[int, PartitionState]) -> tuple[int, ...]:
    """Return the key of a placement."""
    # Partitions that are alike have one state, so its identity says which it is.
    return (*states, *[id(state) for state in states.values()])


class PartitionIndexDelta:
    """The three indexes being changed together with the partitions."""

    __slots__ = ("elr", "isr", "leader")

    def __init__(
        self, isr: BrokerPartitions, leader: BrokerPartitions, elr: BrokerPartitions
    ) -> None:
        self.isr = BrokerWordsDelta(isr)
        self.leader = BrokerWordsDelta(leader)
        self.elr = BrokerWordsDelta(elr)

    def added(self, key: PartitionKey, state: PartitionState) -> None:
        """Add a new partition to the indexes."""
        word, bit = place(key)
        for broker in state.isr:
            _set(self.isr.open_group(broker), word, bit)
        _set(self.leader.open_group(state.leader), word, bit)
        for broker in state.elr:
            _set(self.elr.open_group(broker), word, bit)

    def added_topic(self, topic_id: Uuid, states: Mapping[int, PartitionState]) -> None:
        """Add the first partitions of a topic to the indexes, as ``added`` does."""
        isr, leader = self.first_word(topic_id, states)
        self.isr.add_new(topic_id, isr)
        self.leader.add_new(topic_id, leader)

    def first_word(
        self, topic_id: Uuid, states: Mapping[int, PartitionState]
    ) -> tuple[Mapping[int, int], Mapping[int, int]]:
        """Return the first word of a topic put together: ISR and leader bits by broker.

        Partitions behind that word are added to the indexes here, and those with ELRs, which are
        rare. The bits must not be changed: topics of the same placement share them.
        """
        if len(states) > _SHARED_PARTITIONS_MAX:
            return self._first_word(topic_id, states)[:2]
        key = _alike(states)
        known = _shared.get(key)
        if known is not None:
            return known.isr, known.leader
        isr, leader, is_whole = self._first_word(topic_id, states)
        if is_whole:
            if len(_shared) >= _SHARED_MAX:
                _shared.clear()
            _shared[key] = _SharedWord(isr, leader, tuple(states.values()))
        return isr, leader

    def _first_word(
        self, topic_id: Uuid, states: Mapping[int, PartitionState]
    ) -> tuple[dict[int, int], dict[int, int], bool]:
        """As ``first_word``, and whether the bits are those of all partitions."""
        isr: dict[int, int] = {}
        leader: dict[int, int] = {}
        is_whole = True
        for number, state in states.items():
            if number >= _WORD or state.elr:
                self.added((topic_id, number), state)
                is_whole = False
                continue
            bit = 1 << number
            for broker in state.isr:
                isr[broker] = isr.get(broker, 0) | bit
            leader[state.leader] = leader.get(state.leader, 0) | bit
        return isr, leader, is_whole

    def removed_topic(self, topic_id: Uuid, states: Mapping[int, PartitionState]) -> None:
        """Remove all partitions of a topic from the indexes, as ``removed`` does."""
        known = _shared.get(_alike(states)) if len(states) <= _SHARED_PARTITIONS_MAX else None
        if known is not None:
            self.isr.remove(topic_id, known.isr_gone)
            self.leader.remove(topic_id, known.leader_gone)
            return
        isr: dict[int, int] = {}
        leader: dict[int, int] = {}
        for number, state in states.items():
            if number >= _WORD or state.elr:
                break
            for broker in state.isr:
                isr[broker] = GONE
            leader[state.leader] = GONE
        else:
            # Nothing of the topic is in another word, so its word goes as a whole.
            self.isr.remove(topic_id, isr)
            self.leader.remove(topic_id, leader)
            return
        for number, state in states.items():
            self.removed((topic_id, number), state)

    def removed(self, key: PartitionKey, state: PartitionState) -> None:
        """Remove a deleted partition from the indexes."""
        word, bit = place(key)
        for broker in set(state.isr):
            _clear(self.isr.open_group(broker), word, bit)
        _clear(self.leader.open_group(state.leader), word, bit)
        for broker in set(state.elr):
            _clear(self.elr.open_group(broker), word, bit)

    def changed(self, key: PartitionKey, old: PartitionState, new: PartitionState) -> None:
        """Replace a partition's state in the indexes."""
        word, bit = place(key)
        if old.isr != new.isr:
            _move(self.isr, word, bit, old.isr, new.isr)
        if old.leader != new.leader:
            _clear(self.leader.open_group(old.leader), word, bit)
            _set(self.leader.open_group(new.leader), word, bit)
        if old.elr != new.elr:
            _move(self.elr, word, bit, old.elr, new.elr)


class IndexMoves:
    """Stores moves of many partitions, word by word, while nothing else uses the indexes."""

    __slots__ = ("_groups", "_indexes")

    def __init__(self, index: PartitionIndexDelta) -> None:
        self._indexes = index.isr, index.leader, index.elr
        self._groups: dict[IndexMove, MapMutation[bytes, int]] = {}

    def store(self, word: bytes, moves: Mapping[IndexMove, int]) -> None:
        """Store moves in one word, each with the bits of its partitions."""
        groups = self._groups
        for move, bits in moves.items():
            group = groups.get(move)
            if group is None:
                group = groups[move] = self._indexes[move.kind].open_group(move.broker_id)
            if move.enters:
                group[word] = group.get(word, 0) | bits
            else:
                _clear(group, word, bits)


def index_of(partitions: Map[Uuid, Map[int, PartitionState]]) -> PartitionIndexDelta:
    """Return the indexes of all partitions."""
    index = PartitionIndexDelta(NO_PARTITIONS, NO_PARTITIONS, NO_PARTITIONS)
    isr_groups: dict[int, MapMutation[bytes, int]] = {}
    leader_groups: dict[int, MapMutation[bytes, int]] = {}
    for topic_id, states in partitions.items():
        isr, leader = index.first_word(topic_id, states)
        _store_words(index.isr, isr_groups, topic_id, isr)
        _store_words(index.leader, leader_groups, topic_id, leader)
    return index


def _store_words(
    index: BrokerWordsDelta,
    groups: dict[int, MapMutation[bytes, int]],
    word: bytes,
    bits_of: Mapping[int, int],
) -> None:
    """Store one word for many brokers; ``groups`` are those that are open already."""
    for broker, bits in bits_of.items():
        group = groups.get(broker)
        if group is None:
            group = groups[broker] = index.open_group(broker)
        group[word] = group.get(word, 0) | bits


def place(key: PartitionKey) -> tuple[bytes, int]:
    """Return the word that a partition is in, and its bit there."""
    topic_id, number = key
    if number < _WORD:
        return topic_id, 1 << number
    word = topic_id + (number >> _WORD_BITS).to_bytes(4, "big")
    return word, 1 << (number & (_WORD - 1))


def _set(group: MapMutation[bytes, int], word: bytes, bits: int) -> None:
    group[word] = group.get(word, 0) | bits


def _clear(group: MapMutation[bytes, int], word: bytes, bit: int) -> None:
    left = group[word] & ~bit
    if left:
        group[word] = left
    else:
        group.pop(word)


def _move(
    index: BrokerWordsDelta,
    word: bytes,
    bit: int,
    old: tuple[int, ...],
    new: tuple[int, ...],
) -> None:
    for broker in set(old).difference(new):
        _clear(index.open_group(broker), word, bit)
    for broker in new:
        if broker not in old:
            _set(index.open_group(broker), word, bit)

"""The partitions of each broker as words, to which those of new topics are added at little cost.

A map of ten thousand random keys copies three nodes for each key that it gets, most of which are in
no cache of the processor. A new topic has a word for each of a dozen brokers, in two indexes. So
new words are kept beside a broker's map until they are many, and are put into it together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from immutables import Map, MapMutation

from statemachine.sections.map_delta import EMPTY_MAP

RECENT_MAX = 1024
"""Words beside the map of one broker: putting them into it takes about a millisecond."""


class _Recent:
    """Words that are not in the map, newest first. No key occurs twice with different bits."""

    __slots__ = ("before", "words")

    def __init__(self, words: Mapping[bytes, int], before: _Recent | None) -> None:
        self.words = words
        self.before = before


class BrokerWords:
    """The words of one broker by their keys (``PartitionSet``). They never change.

    How they are kept does: any thread may put them together, with the same result.
    """

    __slots__ = ("_map", "_recent", "_recent_count")

    def __init__(
        self, words: Map[bytes, int], recent: _Recent | None = None, recent_count: int = 0
    ) -> None:
        self._map = words
        self._recent = recent
        self._recent_count = recent_count

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BrokerWords) and self.all() == other.all()

    def all(self) -> Map[bytes, int]:
        """Return the words."""
        # Read before the map and changed behind it: words that a map has already do no harm.
        recent = self._recent
        if recent is None:
            return self._map
        words: dict[bytes, int] = {}
        while recent is not None:
            words.update(recent.words)
            recent = recent.before
        self._map = found = self._map.update(words)
        self._recent = None
        return found

    def with_new(self, words: Mapping[bytes, int]) -> BrokerWords:
        """Return these words and those of new topics, which must not be changed any more."""
        recent = self._recent
        count = len(words) if recent is None else self._recent_count + len(words)
        if count > RECENT_MAX:
            return BrokerWords(self.all().update(words))
        return BrokerWords(self._map, _Recent(words, recent), count)


BrokerPartitions: TypeAlias = Map[int, BrokerWords]
"""By broker: the words of a ``PartitionSet``. A broker without any is not in it."""

NO_WORDS = BrokerWords(EMPTY_MAP)


class BrokerWordsDelta:
    """The words of all brokers in one index, being changed.

    Invariants:
        1. The words of a broker are open for changing, or have been added to, or neither.
    """

    __slots__ = ("_added", "_opened", "_outer")

    def __init__(self, base: BrokerPartitions) -> None:
        self._outer = base
        self._opened: dict[int, MapMutation[bytes, int]] = {}
        self._added: dict[int, dict[bytes, int]] = {}

    def has(self, broker_id: int) -> bool:
        """Whether the broker has any word."""
        opened = self._opened.get(broker_id)
        if opened is not None:
            return bool(len(opened))
        return broker_id in self._added or broker_id in self._outer

    def words(self, broker_id: int) -> Map[bytes, int]:
        """Return a broker's words as of now."""
        if broker_id in self._opened or broker_id in self._added:
            self.settle()
        return self._outer.get(broker_id, NO_WORDS).all()

    def add_new(self, broker_id: int, word: bytes, bits: int) -> None:
        """Add bits to a word, which the broker does not have unless its words are open."""
        opened = self._opened.get(broker_id)
        if opened is not None:
            opened[word] = opened.get(word, 0) | bits
            return
        added = self._added.get(broker_id)
        if added is None:
            self._added[broker_id] = {word: bits}
        else:
            added[word] = bits

    def open_group(self, broker_id: int) -> MapMutation[bytes, int]:
        """Return a broker's words, open for changing until anything else is asked."""
        opened = self._opened.get(broker_id)
        if opened is None:
            opened = self._opened[broker_id] = self._outer.get(broker_id, NO_WORDS).all().mutate()
            added = self._added.pop(broker_id, None)
            if added is not None:
                opened.update(added)
        return opened

    def settle(self) -> BrokerPartitions:
        """Return the words as of now; the delta stays usable."""
        if not self._opened and not self._added:
            return self._outer
        outer = self._outer.mutate()
        for broker_id, opened in self._opened.items():
            settled = opened.finish()
            if settled:
                outer[broker_id] = BrokerWords(settled)
            elif broker_id in outer:
                del outer[broker_id]
        for broker_id, added in self._added.items():
            outer[broker_id] = outer.get(broker_id, NO_WORDS).with_new(added)
        self._opened.clear()
        self._added = {}
        self._outer = outer.finish()
        return self._outer

"""The partitions of each broker as words, to which those of new topics are added at little cost.

A map of ten thousand random keys copies three nodes for each key that it gets, most of which are in
no cache of the processor. A new topic has a word for each of a dozen brokers, in two indexes. So
new words wait twice. First they are kept by topic, beside the words of all brokers. When they are
some thousands, they are sorted by broker and kept beside each broker's map. When a broker has
a thousand, they are put into its map together: one broker at a time, because that takes a
millisecond, and all brokers of a cluster get there at about the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from immutables import Map, MapMutation

from statemachine.sections.map_delta import EMPTY_MAP

NEW_WORDS_MAX = 6144
"""Words kept by topic: to sort them by broker takes about a millisecond."""
RECENT_MAX = 1024
"""Words beside the map of one broker, above which they are put into it before long."""
_WORDS_PER_TURN = 1024
"""For each so many new words, one broker more is put together."""

NewWords: TypeAlias = Mapping[bytes, Mapping[int, int]]
"""Words of new topics: bits by word and broker. None of the brokers had the word."""


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

    @property
    def is_due(self) -> bool:
        """Whether many words are beside the map."""
        return self._recent is not None and self._recent_count > RECENT_MAX

    def all(self) -> Map[bytes, int]:
        """Return the words."""
        # Read before the map and changed behind it: words that a map has already do no harm.
        recent = self._recent
        if recent is None:
            return self._map
        words = self._map.mutate()
        while recent is not None:
            words.update(recent.words)
            recent = recent.before
        self._map = found = words.finish()
        self._recent = None
        return found

    def with_new(self, words: Mapping[bytes, int]) -> BrokerWords:
        """Return these words and those of new topics, which must not be changed any more."""
        recent = self._recent
        count = len(words) if recent is None else self._recent_count + len(words)
        return BrokerWords(self._map, _Recent(words, recent), count)


NO_WORDS = BrokerWords(EMPTY_MAP)


class _NewTopics:
    """New words that are not sorted by broker, newest first."""

    __slots__ = ("before", "words")

    def __init__(self, words: NewWords, before: _NewTopics | None) -> None:
        self.words = words
        self.before = before


class BrokerPartitions:
    """The words of all brokers in one index. A broker without any is not in it.

    They never change. How they are kept does, as in ``BrokerWords``.
    """

    __slots__ = ("_due", "_map", "_new", "_new_count")

    def __init__(
        self,
        words: Map[int, BrokerWords],
        due: tuple[int, ...] = (),
        new: _NewTopics | None = None,
        new_count: int = 0,
    ) -> None:
        self._map = words
        self._due = due
        """Brokers with many words beside their maps. One that is missing is found again when words
        are next sorted by broker."""
        self._new = new
        self._new_count = new_count

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BrokerPartitions) and self.by_broker() == other.by_broker()

    def __contains__(self, broker_id: int) -> bool:
        # Read before the map, which has the words before they are gone here.
        new = self._new
        if broker_id in self._map:
            return True
        while new is not None:
            if any(broker_id in bits for bits in new.words.values()):
                return True
            new = new.before
        return False

    def of(self, broker_id: int) -> BrokerWords:
        """Return the words of one broker."""
        return self.by_broker().get(broker_id, NO_WORDS)

    def items(self) -> Iterable[tuple[int, BrokerWords]]:
        """Return all brokers and their words."""
        return self.by_broker().items()

    def by_broker(self) -> Map[int, BrokerWords]:
        """Return the words by broker."""
        new = self._new
        if new is None:
            return self._map
        sorted_words: dict[int, dict[bytes, int]] = {}
        while new is not None:
            for word, bits_of in new.words.items():
                for broker_id, bits in bits_of.items():
                    of_broker = sorted_words.get(broker_id)
                    if of_broker is None:
                        sorted_words[broker_id] = {word: bits}
                    else:
                        of_broker[word] = bits
            new = new.before
        before = self._map
        outer = before.mutate()
        due: list[int] = []
        for broker_id, words in sorted_words.items():
            found = before.get(broker_id, NO_WORDS).with_new(words)
            outer[broker_id] = found
            if found.is_due:
                due.append(broker_id)
        self._map = all_words = outer.finish()
        self._due = tuple(due)
        self._new = None
        return all_words

    def with_new(self, words: NewWords) -> BrokerPartitions:
        """Return these words and those of new topics, which must not be changed any more."""
        added = sum([len(bits_of) for bits_of in words.values()])
        new = self._new
        count = added if new is None else self._new_count + added
        turn = 1 + added // _WORDS_PER_TURN
        for broker_id in self._due[:turn]:
            self._map.get(broker_id, NO_WORDS).all()
        found = BrokerPartitions(self._map, self._due[turn:], _NewTopics(words, new), count)
        if count > NEW_WORDS_MAX:
            found.by_broker()
        return found


NO_PARTITIONS = BrokerPartitions(EMPTY_MAP)


def no_partitions() -> BrokerPartitions:
    """Return the index without words."""
    return NO_PARTITIONS


class BrokerWordsDelta:
    """The words of all brokers in one index, being changed.

    Invariants:
        1. A word of a broker whose words are open is there, and not among those of new topics.
    """

    __slots__ = ("_added", "_opened", "_outer")

    def __init__(self, base: BrokerPartitions) -> None:
        self._outer = base
        self._opened: dict[int, MapMutation[bytes, int]] = {}
        self._added: dict[bytes, Mapping[int, int]] = {}

    def has(self, broker_id: int) -> bool:
        """Whether the broker has any word."""
        opened = self._opened.get(broker_id)
        if opened is not None:
            return bool(len(opened))
        if any(broker_id in bits_of for bits_of in self._added.values()):
            return True
        return broker_id in self._outer

    def words(self, broker_id: int) -> Map[bytes, int]:
        """Return a broker's words as of now."""
        return self.settle().of(broker_id).all()

    def add_new(self, word: bytes, bits_of: Mapping[int, int]) -> None:
        """Add a word for many brokers, which do not have it unless their words are open.

        ``bits_of`` are the bits by broker, and must not be changed any more.
        """
        opened = self._opened
        if opened:
            others: dict[int, int] = {}
            for broker_id, bits in bits_of.items():
                group = opened.get(broker_id)
                if group is None:
                    others[broker_id] = bits
                else:
                    group[word] = group.get(word, 0) | bits
            bits_of = others
        if bits_of:
            self._added[word] = bits_of

    def open_group(self, broker_id: int) -> MapMutation[bytes, int]:
        """Return a broker's words, open for changing until anything else is asked."""
        opened = self._opened.get(broker_id)
        if opened is None:
            self._settle_new()
            opened = self._opened[broker_id] = self._outer.of(broker_id).all().mutate()
        return opened

    def settle(self) -> BrokerPartitions:
        """Return the words as of now; the delta stays usable."""
        self._settle_new()
        if self._opened:
            outer = self._outer.by_broker().mutate()
            for broker_id, opened in self._opened.items():
                settled = opened.finish()
                if settled:
                    outer[broker_id] = BrokerWords(settled)
                elif broker_id in outer:
                    del outer[broker_id]
            self._opened.clear()
            self._outer = BrokerPartitions(outer.finish())
        return self._outer

    def _settle_new(self) -> None:
        if self._added:
            self._outer = self._outer.with_new(self._added)
            self._added = {}

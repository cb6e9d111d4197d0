"""The partitions of each broker as words, from which topics come and go at little cost.

A map of ten thousand random keys copies three nodes for each key that it gets, most of which are in
no cache of the processor. A new topic has a word for each of a dozen brokers, in two indexes. So
new words wait twice. First they are kept by topic, beside the words of all brokers. When they are
some thousands, they are sorted by broker and kept beside each broker's map. When a broker has
a thousand, they are put into its map together: one broker at a time, because that takes a
millisecond, and all brokers of a cluster get there at about the same time.

The words of deleted topics wait in the same way, as words without bits. Of two words with the same
key the newer one counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from immutables import Map, MapMutation

from statemachine.sections.map_delta import EMPTY_MAP

NEW_WORDS_MAX = 6144
"""Words kept by topic: to sort them by broker takes about a millisecond."""
RECENT_MAX = 1024
"""Words beside the map of one broker, above which they are put into it before long."""
_WORDS_PER_TURN = 1024
"""For each so many new words, one broker more is put together."""

GONE: Final = 0
"""The bits of a word that the broker has no longer."""

NewWords: TypeAlias = Mapping[bytes, Mapping[int, int]]
"""Words of new and deleted topics: bits by word and broker, ``GONE`` of deleted ones. No broker had
the word of a new topic."""


class _Recent:
    """Words that are not in the map, newest first."""

    __slots__ = ("before", "words")

    def __init__(self, words: Mapping[bytes, int], before: _Recent | None) -> None:
        self.words = words
        self.before = before


class BrokerWords:
    """The words of one broker by their keys (``PartitionSet``). They never change.

    How they are kept does: any thread may put them together, with the same result.
    """

    __slots__ = ("_has_gone", "_map", "_recent", "_recent_count")

    def __init__(
        self,
        words: Map[bytes, int],
        recent: _Recent | None = None,
        recent_count: int = 0,
        *,
        has_gone: bool = False,
    ) -> None:
        self._map = words
        self._recent = recent
        self._recent_count = recent_count
        self._has_gone = has_gone
        """Whether words beside the map are gone."""

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
        if self._has_gone:
            _put_newest(words, recent)
        else:
            while recent is not None:
                words.update(recent.words)
                recent = recent.before
        self._map = found = words.finish()
        self._recent = None
        return found

    def with_new(self, words: Mapping[bytes, int]) -> BrokerWords:
        """Return these words with those of new and without those of deleted topics.

        ``words`` must not be changed any more.
        """
        # The map is read after what is beside it, as in ``all``.
        recent = self._recent
        count, has_gone = len(words), GONE in words.values()
        if recent is not None:
            count += self._recent_count
            has_gone = has_gone or self._has_gone
        return BrokerWords(self._map, _Recent(words, recent), count, has_gone=has_gone)

    def may_be_empty(self, gone: int = 0) -> bool:
        """Whether no word may be left, once so many more are ``gone``. Puts nothing together."""
        if self._recent is not None and self._has_gone:
            gone += self._recent_count
        return 0 < gone >= len(self._map)


def _put_newest(words: MapMutation[bytes, int], recent: _Recent | None) -> None:
    newest: dict[bytes, int] = {}
    while recent is not None:
        for word, bits in recent.words.items():
            if word not in newest:
                newest[word] = bits
        recent = recent.before
    for word, bits in newest.items():
        if bits == GONE:
            words.pop(word, None)
        else:
            words[word] = bits


NO_WORDS = BrokerWords(EMPTY_MAP)


class _NewTopics:
    """Words of new and deleted topics that are not sorted by broker, newest first."""

    __slots__ = ("before", "words")

    def __init__(self, words: NewWords, before: _NewTopics | None) -> None:
        self.words = words
        self.before = before


class BrokerPartitions:
    """The words of all brokers in one index. A broker without any is not in it.

    They never change. How they are kept does, as in ``BrokerWords``.
    """

    __slots__ = ("_due", "_has_gone", "_map", "_new", "_new_count")

    def __init__(
        self,
        words: Map[int, BrokerWords],
        due: tuple[int, ...] = (),
        new: _NewTopics | None = None,
        new_count: int = 0,
        *,
        has_gone: bool = False,
    ) -> None:
        self._map = words
        self._due = due
        """Brokers with many words beside their maps. One that is missing is found again when words
        are next sorted by broker."""
        self._new = new
        self._new_count = new_count
        self._has_gone = has_gone
        """Whether words that are not sorted by broker are gone."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BrokerPartitions) and self.by_broker() == other.by_broker()

    def __contains__(self, broker_id: int) -> bool:
        # Read before the map, which has the words before they are gone here.
        new = self._new
        words = self._map.get(broker_id)
        if new is None:
            return words is not None
        if self._has_gone:
            # They may be all that the broker had, which is rare.
            if words is not None and not words.may_be_empty(self._new_count):
                return True
            return broker_id in self.by_broker()
        if words is not None:
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
        groups: list[NewWords] = []
        while new is not None:
            groups.append(new.words)
            new = new.before
        sorted_words: dict[int, dict[bytes, int]] = {}
        # The newest last, because it counts.
        for group in reversed(groups):
            for word, bits_of in group.items():
                for broker_id, bits in bits_of.items():
                    of_broker = sorted_words.get(broker_id)
                    if of_broker is None:
                        sorted_words[broker_id] = {word: bits}
                    else:
                        of_broker[word] = bits
        before = self._map
        outer = before.mutate()
        due: list[int] = []
        for broker_id, words in sorted_words.items():
            found = before.get(broker_id, NO_WORDS).with_new(words)
            if found.may_be_empty() and not found.all():
                outer.pop(broker_id, None)
                continue
            outer[broker_id] = found
            if found.is_due:
                due.append(broker_id)
        self._map = all_words = outer.finish()
        self._due = tuple(due)
        self._new = None
        return all_words

    def with_new(self, words: NewWords, *, has_gone: bool = False) -> BrokerPartitions:
        """Return these words with those of new and without those of deleted topics.

        ``words`` must not be changed any more; ``has_gone`` if any of them is gone.
        """
        added = sum([len(bits_of) for bits_of in words.values()])
        new = self._new
        count = added
        if new is not None:
            count += self._new_count
            has_gone = has_gone or self._has_gone
        turn = 1 + added // _WORDS_PER_TURN
        for broker_id in self._due[:turn]:
            self._map.get(broker_id, NO_WORDS).all()
        found = BrokerPartitions(
            self._map, self._due[turn:], _NewTopics(words, new), count, has_gone=has_gone
        )
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
        1. A word of a broker whose words are open is there, and not among those of new and deleted
           topics.
    """

    __slots__ = ("_added", "_has_gone", "_opened", "_outer")

    def __init__(self, base: BrokerPartitions) -> None:
        self._outer = base
        self._opened: dict[int, MapMutation[bytes, int]] = {}
        self._added: dict[bytes, Mapping[int, int]] = {}
        self._has_gone = False

    def has(self, broker_id: int) -> bool:
        """Whether the broker has any word."""
        opened = self._opened.get(broker_id)
        if opened is not None:
            return bool(len(opened))
        if self._has_gone:
            self._settle_new()
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
        self._add(word, bits_of)

    def remove(self, word: bytes, gone_of: Mapping[int, int]) -> None:
        """Remove a word from many brokers, which have it.

        ``gone_of`` is ``GONE`` by broker, and must not be changed any more.
        """
        opened = self._opened
        if opened:
            others: dict[int, int] = {}
            for broker_id in gone_of:
                group = opened.get(broker_id)
                if group is None:
                    others[broker_id] = GONE
                else:
                    group.pop(word)
            gone_of = others
        self._add(word, gone_of)
        self._has_gone = True

    def _add(self, word: bytes, bits_of: Mapping[int, int]) -> None:
        if word in self._added:
            # A topic came and went: brokers may have had the word that are not among these.
            self._settle_new()
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
            self._outer = self._outer.with_new(self._added, has_gone=self._has_gone)
            self._added = {}
        self._has_gone = False

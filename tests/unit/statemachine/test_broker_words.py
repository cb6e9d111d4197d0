"""Words by broker: those of new topics, kept beside the map, are found like all others."""

from __future__ import annotations

import random

import pytest

from statemachine.sections import broker_words
from statemachine.sections.broker_words import (
    GONE,
    NO_PARTITIONS,
    NO_WORDS,
    BrokerPartitions,
    BrokerWordsDelta,
)

BROKERS = range(3)


def plain(index: BrokerPartitions) -> dict[int, dict[bytes, int]]:
    return {broker: dict(words.all()) for broker, words in index.items()}


@pytest.mark.parametrize(("new_max", "recent_max"), [(0, 0), (0, 5), (7, 0), (7, 5), (1000, 5)])
@pytest.mark.parametrize("seed", range(5))
def test_random_changes_agree_with_dictionaries(
    monkeypatch: pytest.MonkeyPatch, seed: int, new_max: int, recent_max: int
) -> None:
    """Also in every index that was settled before, which must not change any more."""
    monkeypatch.setattr(broker_words, "NEW_WORDS_MAX", new_max)
    monkeypatch.setattr(broker_words, "RECENT_MAX", recent_max)
    rng = random.Random(seed)
    model: dict[int, dict[bytes, int]] = {}
    removed: list[bytes] = []
    delta = BrokerWordsDelta(NO_PARTITIONS)
    settled: list[tuple[BrokerPartitions, dict[int, dict[bytes, int]]]] = []
    for step in range(400):
        broker = rng.choice(BROKERS)
        words = model.setdefault(broker, {})
        choice = rng.random()
        if choice < 0.5:
            word = rng.choice(removed) if removed and rng.random() < 0.2 else rng.randbytes(16)
            if word in removed:
                removed.remove(word)
            brokers = rng.sample(BROKERS, rng.randrange(1, len(BROKERS)))
            bits_of = {each: rng.randrange(1, 1 << 10) for each in brokers}
            delta.add_new(word, bits_of)
            for each, bits in bits_of.items():
                model.setdefault(each, {})[word] = bits
        elif choice < 0.7 and words:
            word = rng.choice(sorted(words))
            gone_of = {each: GONE for each, found in model.items() if found.pop(word, None)}
            delta.remove(word, gone_of)
            removed.append(word)
        elif choice < 0.8 and words:
            word = rng.choice(sorted(words))
            delta.open_group(broker).pop(word)
            del words[word]
        elif choice < 0.9 and words:
            word = rng.choice(sorted(words))
            delta.open_group(broker)[word] = words[word] = rng.randrange(1, 1 << 10)
        elif choice < 0.95:
            index = delta.settle()
            settled.append((index, {each: dict(found) for each, found in model.items() if found}))
            delta = BrokerWordsDelta(index)
            assert (broker in index) == bool(words)
        assert delta.has(broker) == bool(words)
        if step % 7 == 0:
            assert dict(delta.words(broker)) == words
    for index, expected in settled:
        assert plain(index) == expected


def settled(index: BrokerPartitions, first: int, count: int) -> BrokerPartitions:
    """Add so many words, each for all brokers, one settled delta after another."""
    for number in range(first, first + count):
        delta = BrokerWordsDelta(index)
        delta.add_new(number.to_bytes(16, "big"), dict.fromkeys(BROKERS, 1))
        index = delta.settle()
    return index


def test_new_words_are_sorted_by_broker_when_they_are_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Goal: a new topic costs one entry, not one for each broker. Method: three words a topic."""
    monkeypatch.setattr(broker_words, "NEW_WORDS_MAX", 10)
    index = settled(NO_PARTITIONS, 0, 3)
    assert len(index._map) == 0
    index = settled(index, 3, 1)
    assert [len(words._map) for _, words in index._map.items()] == [0, 0, 0]
    assert index._new is None


def test_a_broker_is_found_in_any_of_the_new_words() -> None:
    index = NO_PARTITIONS
    for broker in BROKERS:
        delta = BrokerWordsDelta(index)
        delta.add_new(bytes([broker]) * 16, {broker: 1})
        assert [each in delta.settle() for each in BROKERS] == [each <= broker for each in BROKERS]
        index = delta.settle()
    assert index._new is not None, "asking sorts nothing"


def test_words_of_deleted_topics_wait_as_new_ones_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: a deleted topic costs one entry. Method: delete some of many, and ask for a broker."""
    monkeypatch.setattr(broker_words, "NEW_WORDS_MAX", 30)
    index = settled(NO_PARTITIONS, 0, 40)
    for broker in BROKERS:
        index.of(broker).all()
    delta = BrokerWordsDelta(index)
    for number in range(5):
        delta.remove(number.to_bytes(16, "big"), dict.fromkeys(BROKERS, GONE))
    index = delta.settle()
    assert all(broker in index for broker in BROKERS), "more words than those that are gone"
    assert index._new is not None, "asking sorts nothing"
    assert [len(words._map) for _, words in index._map.items()] == [40, 40, 40]
    assert [len(index.of(broker).all()) for broker in BROKERS] == [35, 35, 35]


def test_a_broker_whose_words_are_all_gone_is_not_in_the_index() -> None:
    index = settled(NO_PARTITIONS, 0, 2)
    delta = BrokerWordsDelta(index)
    delta.remove(bytes(16), dict.fromkeys(BROKERS, GONE))
    delta.remove((1).to_bytes(16, "big"), {1: GONE})
    assert [delta.has(broker) for broker in BROKERS] == [True, False, True]
    assert [broker in delta.settle() for broker in BROKERS] == [True, False, True]
    assert set(delta.settle().by_broker()) == {0, 2}


def test_one_broker_at_a_time_is_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: no turn pays for all brokers. Method: all three get above the limit at once."""
    monkeypatch.setattr(broker_words, "NEW_WORDS_MAX", 0)
    monkeypatch.setattr(broker_words, "RECENT_MAX", 3)

    def kept_in_map(index: BrokerPartitions) -> list[int]:
        return sorted(len(words._map) for _, words in index._map.items())

    index = settled(NO_PARTITIONS, 0, 4)
    assert kept_in_map(index) == [0, 0, 0]
    found = []
    for number in range(4, 8):
        index = settled(index, number, 1)
        found.append(sum(each > 0 for each in kept_in_map(index)))
    assert found == [1, 2, 3, 3]


def test_many_new_words_at_once_put_more_brokers_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Goal: what waits stays bounded. Method: a delta with the words of two turns."""
    monkeypatch.setattr(broker_words, "NEW_WORDS_MAX", 0)
    monkeypatch.setattr(broker_words, "RECENT_MAX", 3)
    monkeypatch.setattr(broker_words, "_WORDS_PER_TURN", 6)
    index = settled(NO_PARTITIONS, 0, 4)
    delta = BrokerWordsDelta(index)
    for number in range(4, 8):
        delta.add_new(number.to_bytes(16, "big"), dict.fromkeys(BROKERS, 1))
    index = delta.settle()
    assert [words._recent is None for _, words in index._map.items()].count(False) == 3
    assert sorted(len(words._map) for _, words in index._map.items()) == [4, 4, 4]


def test_a_word_that_is_open_gets_the_bits_of_new_partitions_as_well() -> None:
    delta = BrokerWordsDelta(NO_PARTITIONS)
    delta.open_group(1)[b"word"] = 1
    delta.add_new(b"word", {1: 2, 2: 4})
    assert (delta.words(1)[b"word"], delta.words(2)[b"word"]) == (3, 4)


def test_equal_words_are_equal_however_they_are_kept() -> None:
    apart = NO_WORDS.with_new({b"a": 1}).with_new({b"b": 2})
    together = NO_WORDS.with_new({b"a": 1, b"b": 2})
    together.all()
    assert apart == together != NO_WORDS
    by_topic = NO_PARTITIONS.with_new({b"a": {1: 1}, b"b": {1: 2}})
    by_broker = NO_PARTITIONS.with_new({b"a": {1: 1}}).with_new({b"b": {1: 2}})
    by_broker.of(1).all()
    assert by_topic == by_broker != NO_PARTITIONS

"""Words by broker: those of new topics, kept beside the map, are found like all others."""

from __future__ import annotations

import random

import pytest

from statemachine.sections import broker_words
from statemachine.sections.broker_words import NO_WORDS, BrokerPartitions, BrokerWordsDelta
from statemachine.sections.map_delta import EMPTY_MAP

BROKERS = range(3)


def plain(index: BrokerPartitions) -> dict[int, dict[bytes, int]]:
    return {broker: dict(words.all()) for broker, words in index.items()}


@pytest.mark.parametrize("recent_max", [0, 5, 1000])
@pytest.mark.parametrize("seed", range(5))
def test_random_changes_agree_with_dictionaries(
    monkeypatch: pytest.MonkeyPatch, seed: int, recent_max: int
) -> None:
    """Also in every index that was settled before, which must not change any more."""
    monkeypatch.setattr(broker_words, "RECENT_MAX", recent_max)
    rng = random.Random(seed)
    model: dict[int, dict[bytes, int]] = {}
    delta = BrokerWordsDelta(EMPTY_MAP)
    settled: list[tuple[BrokerPartitions, dict[int, dict[bytes, int]]]] = []
    for step in range(400):
        broker = rng.choice(BROKERS)
        words = model.setdefault(broker, {})
        choice = rng.random()
        if choice < 0.7:
            word, bits = rng.randbytes(16), rng.randrange(1, 1 << 10)
            delta.add_new(broker, word, bits)
            words[word] = bits
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
        assert delta.has(broker) == bool(words)
        if step % 7 == 0:
            assert dict(delta.words(broker)) == words
    for index, expected in settled:
        assert plain(index) == expected


def test_words_of_new_topics_are_put_into_the_map_when_they_are_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(broker_words, "RECENT_MAX", 3)
    words = NO_WORDS
    for number in range(4):
        assert len(words._map) == 0
        words = words.with_new({bytes([number]): 1})
    assert len(words._map) == 4


def test_a_word_that_is_open_gets_the_bits_of_new_partitions_as_well() -> None:
    delta = BrokerWordsDelta(EMPTY_MAP)
    delta.open_group(1)[b"word"] = 1
    delta.add_new(1, b"word", 2)
    assert delta.words(1)[b"word"] == 3


def test_equal_words_are_equal_however_they_are_kept() -> None:
    apart = NO_WORDS.with_new({b"a": 1}).with_new({b"b": 2})
    together = NO_WORDS.with_new({b"a": 1, b"b": 2})
    together.all()
    assert apart == together != NO_WORDS

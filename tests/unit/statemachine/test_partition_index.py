"""The indexes by broker: equal to plain sets, in order, small for any partition number."""

from __future__ import annotations

import random

import pytest
from immutables import Map

from statemachine.sections import partition_index
from statemachine.sections.broker_words import NO_PARTITIONS
from statemachine.sections.partition_index import (
    PartitionIndexDelta,
    PartitionKey,
    PartitionSet,
    index_of,
)
from statemachine.sections.partitions import PartitionState

TOPICS = [bytes([each]) * 16 for each in (1, 2, 3)]
NUMBERS = [0, 1, 9, 63, 64, 1023, 1024, 1025, 70_000, (1 << 31) - 1]


def state(rng: random.Random) -> PartitionState:
    isr = tuple(rng.sample(range(4), rng.randrange(1, 4)))
    elr = tuple(rng.sample(range(4), rng.randrange(3)))
    return PartitionState(replicas=isr, isr=isr, leader=rng.choice((-1, *isr)), elr=elr)


@pytest.mark.parametrize("seed", range(20))
def test_random_changes_agree_with_plain_sets_in_order(seed: int) -> None:
    rng = random.Random(seed)
    model: dict[PartitionKey, PartitionState] = {}
    index = PartitionIndexDelta(NO_PARTITIONS, NO_PARTITIONS, NO_PARTITIONS)
    for step in range(300):
        key = (rng.choice(TOPICS), rng.choice(NUMBERS))
        old = model.pop(key, None)
        if old is None:
            model[key] = state(rng)
            index.added(key, model[key])
        elif rng.random() < 0.5:
            index.removed(key, old)
        else:
            model[key] = state(rng)
            index.changed(key, old, model[key])
        if step % 50 == 49:
            index = PartitionIndexDelta(
                index.isr.settle(), index.leader.settle(), index.elr.settle()
            )
    for broker in range(-1, 4):
        in_isr = PartitionSet(index.isr.words(broker))
        led = PartitionSet(index.leader.words(broker))
        eligible = PartitionSet(index.elr.words(broker))
        assert list(in_isr) == sorted(key for key, each in model.items() if broker in each.isr)
        assert list(led) == sorted(key for key, each in model.items() if broker == each.leader)
        assert list(eligible) == sorted(key for key, each in model.items() if broker in each.elr)
        assert list(in_isr | led) == sorted({*in_isr, *led})
        assert (len(in_isr), bool(in_isr)) == (len(list(in_isr)), any(True for _ in in_isr))


def test_no_number_makes_a_large_word() -> None:
    index = PartitionIndexDelta(NO_PARTITIONS, NO_PARTITIONS, NO_PARTITIONS)
    for number in NUMBERS:
        index.added((TOPICS[0], number), PartitionState(isr=(1,), leader=1))
    assert all(bits < 1 << 1024 for bits in index.isr.words(1).values())


@pytest.mark.parametrize(("shared_max", "partitions_max"), [(1000, 64), (3, 64), (1000, 2)])
@pytest.mark.parametrize("seed", range(5))
def test_topics_of_one_placement_are_found_like_all_others(
    monkeypatch: pytest.MonkeyPatch, seed: int, shared_max: int, partitions_max: int
) -> None:
    """Goal: shared words are of the same numbers and states. Method: few states in many orders.

    Some states are made anew, where the ones before may have been; some have an ELR.
    """
    monkeypatch.setattr(partition_index, "_shared", {})
    monkeypatch.setattr(partition_index, "_SHARED_MAX", shared_max)
    monkeypatch.setattr(partition_index, "_SHARED_PARTITIONS_MAX", partitions_max)
    rng = random.Random(seed)
    kept = [state(rng)._replace(elr=()) for _ in range(3)]
    index = PartitionIndexDelta(NO_PARTITIONS, NO_PARTITIONS, NO_PARTITIONS)
    model: dict[PartitionKey, PartitionState] = {}
    for number in range(300):
        topic_id = number.to_bytes(16, "big")
        first = rng.choice((0, 0, 0, 1, 1023))
        states = {
            first + each: rng.choice(kept) if rng.random() < 0.9 else state(rng)
            for each in range(rng.randrange(1, 4))
        }
        index.added_topic(topic_id, states)
        model |= {(topic_id, each): found for each, found in states.items()}
        assert len(partition_index._shared) <= shared_max
        assert all(len(key) <= 2 * partitions_max for key in partition_index._shared)
    for broker in range(-1, 4):
        in_isr = PartitionSet(index.isr.words(broker))
        led = PartitionSet(index.leader.words(broker))
        eligible = PartitionSet(index.elr.words(broker))
        assert list(in_isr) == sorted(key for key, each in model.items() if broker in each.isr)
        assert list(led) == sorted(key for key, each in model.items() if broker == each.leader)
        assert list(eligible) == sorted(key for key, each in model.items() if broker in each.elr)


def settled(index: PartitionIndexDelta) -> PartitionIndexDelta:
    return PartitionIndexDelta(index.isr.settle(), index.leader.settle(), index.elr.settle())


def words_of(index: PartitionIndexDelta) -> list[dict[int, dict[bytes, int]]]:
    """All words by broker of ISR, leader and ELR; a broker without words must not be there."""
    return [
        {broker: dict(words.all()) for broker, words in each.settle().items()}
        for each in (index.isr, index.leader, index.elr)
    ]


def one_by_one(model: dict[bytes, dict[int, PartitionState]]) -> PartitionIndexDelta:
    index = PartitionIndexDelta(NO_PARTITIONS, NO_PARTITIONS, NO_PARTITIONS)
    for topic_id, states in model.items():
        for number, each in states.items():
            index.added((topic_id, number), each)
    return index


@pytest.mark.parametrize(("shared_max", "partitions_max"), [(1000, 64), (3, 64), (1000, 2)])
@pytest.mark.parametrize("seed", range(8))
def test_topics_that_are_removed_leave_what_is_indexed_anew(
    monkeypatch: pytest.MonkeyPatch, seed: int, shared_max: int, partitions_max: int
) -> None:
    """Goal: a topic goes from every word, by shared words or partition by partition.

    Method: topics of few placements come, change and go, some within one delta, some under an id
    that was there before. What is left has the words that an index of the partitions gets anew.
    """
    monkeypatch.setattr(partition_index, "_shared", {})
    monkeypatch.setattr(partition_index, "_SHARED_MAX", shared_max)
    monkeypatch.setattr(partition_index, "_SHARED_PARTITIONS_MAX", partitions_max)
    rng = random.Random(seed)
    kept = [state(rng)._replace(elr=()) for _ in range(3)]
    index = PartitionIndexDelta(NO_PARTITIONS, NO_PARTITIONS, NO_PARTITIONS)
    model: dict[bytes, dict[int, PartitionState]] = {}
    was_shared = {True: 0, False: 0}
    for step in range(400):
        topic_id = rng.randrange(25).to_bytes(16, "big")
        states = model.get(topic_id)
        if states is None:
            first = rng.choice((0, 0, 0, 0, 1022, 70_000))
            states = model[topic_id] = {
                first + each: rng.choice(kept) if rng.random() < 0.9 else state(rng)
                for each in range(rng.randrange(1, 4))
            }
            index.added_topic(topic_id, dict(states))
        elif rng.random() < 0.4:
            number = rng.choice(sorted(states))
            old, states[number] = states[number], rng.choice((*kept, state(rng)))
            index.changed((topic_id, number), old, states[number])
        else:
            was_shared[partition_index._alike(states) in partition_index._shared] += 1
            index.removed_topic(topic_id, model.pop(topic_id))
        if rng.random() < 0.2:
            index = settled(index)
        if step % 100 == 99:
            anew = index_of(Map({each: Map(held) for each, held in model.items()}))
            assert words_of(index) == words_of(anew) == words_of(one_by_one(model))
    assert min(was_shared.values()) > 10, "both ways were taken"


def test_topics_of_one_placement_share_their_words() -> None:
    index = PartitionIndexDelta(NO_PARTITIONS, NO_PARTITIONS, NO_PARTITIONS)
    states = {0: PartitionState(isr=(1, 2), leader=1), 1: PartitionState(isr=(2, 1), leader=2)}
    first, second = (index.first_word(topic_id, dict(states)) for topic_id in TOPICS[:2])
    assert first == ({1: 3, 2: 3}, {1: 1, 2: 2})
    assert all(one is other for one, other in zip(first, second, strict=True))

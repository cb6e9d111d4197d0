"""Batches of partitions read at once: each record, state and refusal is that of the decoder."""

from __future__ import annotations

import random
from dataclasses import replace

import msgpack
import pytest

from quorum.batch import encode_batch, read_header
from quorum.errors import RecordCodecError, ReplayError, UnknownRecordError
from statemachine.codec import decode_record, encode_kafka, encode_record
from statemachine.delta import ImageDelta
from statemachine.image import EMPTY_IMAGE
from statemachine.partition_updates import UpdateReader
from statemachine.records import (
    ConfigRecord,
    Extra,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
)
from statemachine.sections.topics_delta import TopicsDelta

TOPICS = [bytes([letter]) * 16 for letter in b"abc"]
NUMBERS = (0, 1, 127, 128, 255, 256, 1023, 1024, 65535, 65536)
"""Of one, two and three bytes; the last one of five."""
NEWER = Extra((7, "later"))


def some_records(seed: int, count: int) -> list[PartitionRecord | PartitionChangeRecord]:
    """Partitions of three topics, then changes of them; some records have unknown fields."""
    rng = random.Random(seed)
    found: list[PartitionRecord | PartitionChangeRecord] = [
        PartitionRecord(number, topic, (1, 2, 3), (1, 2), leader=1)
        for topic in TOPICS
        for number in NUMBERS
    ]
    for _ in range(count):
        number, topic = rng.choice(NUMBERS), rng.choice(TOPICS)
        isr = tuple(rng.sample((1, 2, 3), rng.randint(1, 3)))
        record: PartitionRecord | PartitionChangeRecord = PartitionChangeRecord(
            number, topic, isr=isr, leader=rng.choice((-2, *isr))
        )
        if rng.random() < 0.2:
            record = PartitionRecord(number, topic, (3, 2, 1), isr, leader=isr[0], leader_epoch=9)
        found.append(replace(record, extra=NEWER) if rng.random() < 0.2 else record)
    return found


def with_topics() -> ImageDelta:
    delta = ImageDelta(EMPTY_IMAGE)
    for place, topic in enumerate(TOPICS):
        delta.replay(TopicRecord(f"t{place}", topic))
    return delta


@pytest.mark.parametrize("known_max", [3, 1000])
@pytest.mark.parametrize("encode", [encode_record, encode_kafka])
def test_records_and_states_are_those_of_the_decoder(known_max, encode) -> None:
    """Goal: state after every record. Method: several batches of one reader, also a small one."""
    reader = UpdateReader(known_max=known_max)
    quick, slow = with_topics(), with_topics()
    for seed in range(8):
        records = some_records(seed, 60)
        updates = reader.read([encode(record) for record in records])
        assert updates is not None
        updates.replay(quick.open_topics())
        for place, record in enumerate(records):
            topic_id, number = updates.topic_ids[place], updates.numbers[place]
            same = replace(updates.records[place], topic_id=topic_id, partition_id=number)
            assert same == record
            slow.replay(record)
            topics = slow.topics
            assert updates.states[place] == topics.partition(topic_id, number), (seed, place)
    assert quick.topics.settle() == slow.topics.settle()
    assert quick.tracker.settled_extras() == slow.tracker.settled_extras() != {}
    assert quick.tracker.touched == slow.tracker.touched


@pytest.mark.parametrize("seed", range(4))
def test_no_bytes_give_a_record_that_the_decoder_does_not_give(seed: int) -> None:
    """Goal: a reader that remembers much takes no other value for one that it knows."""
    rng = random.Random(seed)
    reader = UpdateReader(known_max=10_000)
    values = [encode_record(record) for record in some_records(seed, 50)]
    assert reader.read(values) is not None
    refused = 0
    for _ in range(20_000):
        value = bytearray(rng.choice(values))
        for _ in range(rng.randint(1, 2)):
            kind, place = rng.random(), rng.randrange(len(value))
            if kind < 0.7:
                value[place] = rng.choice(
                    (value[place] ^ 1 << rng.randrange(8), rng.randrange(256))
                )
            elif kind < 0.85:
                del value[place:]
                value += b"\xc0" * (not value)
            else:
                value.insert(place, rng.randrange(256))
        found = reader.read([bytes(value)])
        try:
            wanted = decode_record(bytes(value))
        except (RecordCodecError, UnknownRecordError):
            assert found is None
            refused += 1
            continue
        if not isinstance(wanted, PartitionRecord | PartitionChangeRecord):
            assert found is None
            continue
        assert found is not None
        same = replace(found.records[0], topic_id=found.topic_ids[0], partition_id=found.numbers[0])
        assert same == wanted, value.hex()
    assert 1000 < refused < 19_000


def test_anything_else_is_left_to_the_decoder() -> None:
    value = encode_record(some_records(1, 0)[0])
    config = encode_record(ConfigRecord(2, "a", "k", "1"))
    reader = UpdateReader(known_max=100)
    assert reader.read([value]) is not None
    for other in (config, b"", b"\x9c", value[:3], value[:4], None, msgpack.packb([3, 99])):
        assert reader.read([value, other]) is None
    assert reader.read([value, value]) is not None


def test_a_record_that_contradicts_the_state_is_the_one_named() -> None:
    """Goal: those before it are applied, and the error has its offset and type."""
    reader = UpdateReader(known_max=100)
    records = [
        PartitionRecord(0, TOPICS[0], (1,), (1,), leader=1),
        PartitionChangeRecord(0, TOPICS[0], leader=1),
        PartitionChangeRecord(1, TOPICS[0], leader=1),
    ]
    values = [encode_record(record) for record in records]
    updates = reader.read(values)
    assert updates is not None
    delta = with_topics()
    header = read_header(encode_batch(values, base_offset=0, epoch=1, timestamp=1))
    named = r"PartitionChangeRecord: change to no partition: .*-1"
    with pytest.raises(ReplayError, match=named) as caught:
        delta.replay_batch(header, [updates])
    assert caught.value.offset == 2
    assert len(updates.states) == 2
    assert isinstance(delta.topics, TopicsDelta)


def test_chosen_records_keep_their_states() -> None:
    reader = UpdateReader(known_max=100)
    records = some_records(2, 5)
    updates = reader.read([encode_record(record) for record in records])
    assert updates is not None
    updates.replay(with_topics().open_topics())
    found = updates.chosen([1, 33])
    assert found.values == [encode_record(records[1]), encode_record(records[33])]
    assert found.states == [updates.states[1], updates.states[33]]
    assert list(zip(found.topic_ids, found.numbers)) == [
        (record.topic_id, record.partition_id) for record in (records[1], records[33])
    ]

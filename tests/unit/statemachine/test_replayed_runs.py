"""Runs of partitions in the log: written and replayed at once, they equal records taken alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.batch import encode_batch, read_header
from quorum.errors import RecordCodecError, ReplayError
from statemachine.codec import encode_kafka, encode_record
from statemachine.delta import ImageDelta
from statemachine.dump import dump_records, dump_values, state_digest
from statemachine.encoded_runs import encode_records
from statemachine.image import EMPTY_IMAGE
from statemachine.machine import StateMachine
from statemachine.records import (
    ConfigRecord,
    Extra,
    FeatureLevelRecord,
    PartitionRecord,
    TopicRecord,
    record_version,
)
from statemachine.sections.scanned_topics import ScannedTopics

LEVEL = FeatureLevelRecord("metadata.version", 33)
PLAIN = PartitionRecord(
    0, b"t" * 16, (1, 2, 3), (1, 2, 3), leader=1, leader_epoch=3, partition_epoch=4,
    directories=(b"a" * 16, b"b" * 16, b"c" * 16),
)  # fmt: skip
CHANGES = (
    {}, {"isr": (2,), "leader": 2}, {"directories": ()}, {"eligible_leader_replicas": (3,)},
    {"extra": Extra((7,))}, {"leader": -1, "isr": ()}, {"leader_epoch": 200},
    {"replicas": (300, 2), "isr": (2, 300), "removing_replicas": (2,), "adding_replicas": (300,)},
)  # fmt: skip
NUMBERS = st.one_of(st.integers(0, 5), st.sampled_from([127, 128, 255, 256, 1023, 1024, 65536]))
PARTITIONS = st.builds(
    lambda letter, number, more: replace(
        PLAIN, partition_id=number, topic_id=letter * 16, **more
    ),
    st.sampled_from([b"t", b"u", b"v"]), NUMBERS, st.sampled_from(CHANGES),
)  # fmt: skip
OTHERS = st.sampled_from(
    [LEVEL, ConfigRecord(2, "u", "retention.ms", "1"), TopicRecord("t", b"t" * 16)]
)
BATCHES = st.lists(st.lists(st.one_of(PARTITIONS, PARTITIONS, OTHERS), min_size=1), min_size=1)
BEGIN = [LEVEL, *(TopicRecord(each, each.encode() * 16) for each in "tuv")]


class OneByOne(list):
    """Records that replay takes one after the other, as from every sequence but a list."""


def in_batches(batches, values=encode_records):
    offset = 0
    for records in batches:
        yield encode_batch(values(records), base_offset=offset, epoch=1, timestamp=9)
        offset += len(records)


def one_by_one(batches):
    delta = ImageDelta(EMPTY_IMAGE)
    for data, records in zip(in_batches(batches), batches):
        delta.replay_batch(read_header(data), OneByOne(records))
    return delta


def assert_same(found, wanted):
    assert found.topics == wanted.topics
    assert found.extras == wanted.extras
    for index in ("isr_index", "leader_index", "elr_index"):
        assert getattr(found.topics, index) == getattr(wanted.topics, index), index
    assert state_digest(found) == state_digest(wanted)


@given(BATCHES)
def test_values_written_at_once_are_those_of_each_record(batches):
    for records in batches:
        assert encode_records(records) == [encode_record(each) for each in records]


@given(BATCHES)
def test_a_follower_and_a_leader_get_the_state_of_records_replayed_alone(batches):
    """From bytes, as a follower, and from records, as the leader: content, indexes, changes."""
    batches = [BEGIN, *batches]
    wanted = one_by_one(batches)
    machine, leader = StateMachine(), ImageDelta(EMPTY_IMAGE)
    for data, records in zip(in_batches(batches), batches):
        machine.apply(data)
        leader.replay_batch(read_header(data), records)
    # One delta for all batches, so that both count changes since the same image.
    follower = StateMachine()
    follower.apply(b"".join(in_batches(batches)))
    assert leader.changed_keys == wanted.changed_keys
    assert follower.changes.changed_records == len(wanted.changed_keys)
    image = wanted.finish()
    for found in (machine.image, follower.image, leader.finish()):
        assert_same(found, image)


@given(BATCHES)
def test_a_reader_of_the_log_gets_the_same_topics(batches):
    """It keeps no indexes; runs must not hide a change from what it has scanned."""
    delta = ImageDelta(EMPTY_IMAGE)
    delta.topics = ScannedTopics(EMPTY_IMAGE.topics, delta.tracker)
    batches = [BEGIN, *batches]
    wanted = one_by_one(batches)
    for data, records in zip(in_batches(batches), batches):
        delta.topics.led_by(1)
        delta.replay_batch(read_header(data), records)
    image = wanted.finish()
    for broker in (-1, 1, 2):
        assert list(delta.topics.led_by(broker)) == list(image.topics.led_by(broker))
    assert_same(delta.finish(), image)


def test_both_codecs_lead_to_the_same_state():
    records = [*BEGIN, *(replace(PLAIN, partition_id=number) for number in range(9))]

    def in_kafkas(records):
        return [encode_kafka(each, 2 if each.API_KEY == 3 else None) for each in records]

    native, kafka = StateMachine(), StateMachine()
    native.apply(b"".join(in_batches([records])))
    kafka.apply(b"".join(in_batches([records], in_kafkas)))
    assert_same(kafka.image, native.image)


def test_states_that_are_equal_are_one_object():
    """On a follower and on a leader: many partitions take little memory."""
    records = [*BEGIN, *(replace(PLAIN, partition_id=number) for number in range(40))]
    machine, leader = StateMachine(), ImageDelta(EMPTY_IMAGE)
    (data,) = in_batches([records])
    machine.apply(data)
    leader.replay_batch(read_header(data), [replace(each) for each in records])
    for image in (machine.image, leader.finish()):
        states = image.topics.partitions_of(b"t" * 16).values()
        assert len({id(state) for state in states}) == 1


def test_a_partition_of_no_topic_is_refused_by_its_offset():
    """The run in front of it is counted; nothing is applied."""
    run = [replace(PLAIN, partition_id=number) for number in range(3)]
    batches = [BEGIN, [*run, replace(PLAIN, topic_id=b"x" * 16, partition_id=4)]]
    machine = StateMachine()
    with pytest.raises(ReplayError, match="PartitionRecord: partition 4 of no topic") as caught:
        machine.apply(b"".join(in_batches(batches)))
    assert caught.value.offset == len(BEGIN) + 3
    assert machine.image == EMPTY_IMAGE
    with pytest.raises(ReplayError, match="partition -1 of no topic"):
        machine.apply(b"".join(in_batches([BEGIN, [*run, replace(PLAIN, partition_id=-1)]])))


def test_a_damaged_partition_behind_a_run_is_named_by_its_offset():
    values = [encode_record(replace(PLAIN, partition_id=number)) for number in range(3)]
    batches = [BEGIN, [*values, values[0][:-1]]]
    data = b"".join(
        in_batches(batches, lambda each: each if each is batches[1] else encode_records(each))
    )
    with pytest.raises(RecordCodecError, match=f"offset {len(BEGIN) + 3}"):
        StateMachine().apply(data)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    "wrong",
    [{"partition_id": 1 << 40}, {"partition_id": 1.0}, {"topic_id": "t" * 16}, {"replicas": [1]},
     {"topic_id": b"t" * 15}, {"leader": 1 << 40}, {"isr": ("1",)}],
)  # fmt: skip
def test_a_partition_that_cannot_be_written_is_refused(wrong):
    """Also behind one that is equal but for what is wrong."""
    with pytest.raises(RecordCodecError):
        encode_records([PLAIN, replace(PLAIN, **wrong)])


@given(BATCHES, st.sampled_from([0, 16, 17, 23, 33]))
def test_a_checkpoint_has_the_values_of_each_record(batches, level):
    """At every feature level, with unknown fields and without."""
    delta = one_by_one([BEGIN, *batches])
    delta.replay(FeatureLevelRecord("metadata.version", level))
    image = delta.finish()
    assert list(dump_values(image)) == [
        encode_record(each, record_version(each, image.features.metadata_version))
        for each in dump_records(image)
    ]

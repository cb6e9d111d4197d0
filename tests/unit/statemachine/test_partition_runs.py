"""Runs of partition records in a checkpoint: loaded at once, they equal what is replayed alone."""

from __future__ import annotations

import random
from dataclasses import replace

import msgpack
import pytest

from quorum.batch import encode_batch
from quorum.control import SnapshotFooter, SnapshotHeader, encode_control_batch
from quorum.errors import RecordCodecError, ReplayError, UnknownRecordError
from quorum.types import SnapshotId
from statemachine import loading
from statemachine.codec import decode_record, encode_kafka, encode_record
from statemachine.delta import ImageDelta
from statemachine.dump import StateDigest
from statemachine.image import EMPTY_IMAGE
from statemachine.loading import load_checkpoint
from statemachine.partition_runs import PartitionRun, runs_of
from statemachine.records import (
    ConfigRecord,
    Extra,
    FeatureLevelRecord,
    PartitionRecord,
    TopicRecord,
)
from statemachine.sections.partitions import state_of

LEVEL = FeatureLevelRecord("metadata.version", 33)
PLAIN = PartitionRecord(
    0, b"t" * 16, (1, 2, 3), (1, 2, 3), leader=1, leader_epoch=3, partition_epoch=4,
    directories=(b"a" * 16, b"b" * 16, b"c" * 16),
)  # fmt: skip


def topic(letter):
    return TopicRecord(letter, letter.encode() * 16)


def partition(letter, number, **changes):
    return replace(PLAIN, partition_id=number, topic_id=letter.encode() * 16, **changes)


def load(values, decode=decode_record, footer=None):
    if footer is None:
        digest = StateDigest()
        digest.update_all(values)
        footer = digest.value()
    data = [
        encode_control_batch([SnapshotHeader(9)], base_offset=0, epoch=1, timestamp=9),
        encode_batch(values, base_offset=1, epoch=1, timestamp=9),
        encode_control_batch(
            [SnapshotFooter(footer)], base_offset=1 + len(values), epoch=1, timestamp=9
        ),
    ]
    return load_checkpoint(SnapshotId(100, 1), data, decode=decode)


def replayed(records):
    delta = ImageDelta(EMPTY_IMAGE)
    for record in records:
        delta.replay(record)
    return delta.finish()


def assert_same(records):
    """The loaded image has the content, the indexes and the unknown fields of the replayed one."""
    loaded = load([encode_record(each) for each in records], footer=b"")
    found, wanted = loaded.image, replayed(records)
    assert loaded.record_count == len(records)
    assert found.topics == wanted.topics
    assert found.extras == wanted.extras
    for name in ("isr_index", "leader_index", "elr_index", "partition_count"):
        assert getattr(found.topics, name) == getattr(wanted.topics, name), name


def test_partitions_that_are_alike_get_the_states_of_their_records():
    """Numbers of one, two and three bytes; a topic of another's tail; records in between."""
    numbers = (0, 1, 127, 128, 255, 256, 1023, 1024, 65535, 65536)
    assert_same(
        [LEVEL, topic("t"), *(partition("t", number) for number in numbers), topic("u"),
         partition("u", 7), partition("u", 8, isr=(2, 3), leader=2),
         ConfigRecord(2, "u", "retention.ms", "1"), topic("v"), partition("v", 7)]
    )  # fmt: skip


def test_states_that_are_equal_are_one_object():
    """A million partitions in a few forms take little memory."""
    records = [LEVEL, topic("t"), *(partition("t", number) for number in range(40))]
    states = load([encode_record(each) for each in records]).image.topics.partitions_of(b"t" * 16)
    assert len({id(state) for state in states.values()}) == 1


def test_any_order_and_any_repetition_ends_as_if_replayed_one_by_one():
    """A topic in pieces, a number twice with two states, unknown fields, every version, ELRs."""
    rng = random.Random(5)
    for _ in range(200):
        records = [LEVEL, topic("t"), topic("u"), topic("v")]
        for _ in range(rng.randrange(1, 30)):
            more = rng.choice(
                ({}, {}, {}, {"isr": (2,), "leader": 2}, {"directories": ()},
                 {"eligible_leader_replicas": (3,)}, {"extra": Extra((7,))}, {"leader": -1})
            )  # fmt: skip
            records.append(partition(rng.choice("tuv"), rng.randrange(4), **more))
        assert_same(records)


def test_nothing_is_remembered_any_more_if_hardly_two_are_alike(monkeypatch):
    """The image is the same; what was remembered does not grow."""
    monkeypatch.setattr(loading, "KNOWN_MAX", 4)
    monkeypatch.setattr(loading, "HITS_MIN", 2)
    different = [partition("t", number, leader_epoch=number) for number in range(30)]
    assert_same([LEVEL, topic("t"), *different, topic("u"), *(partition("u", n) for n in range(9))])
    assert_same([LEVEL, topic("t"), *(partition("t", n, leader_epoch=n // 5) for n in range(60))])


@pytest.mark.parametrize(
    ("at", "wrong"),
    [(3, "t" * 16), (4, (1.0, 2, 3)), (4, (True, 2, 3)), (8, 1.0), (11, True), (2, 1.0), (2, -1)],
)
def test_a_value_that_is_equal_but_of_another_type_is_still_refused(at, wrong):
    """1, 1.0 and True are equal and hash alike; their bytes differ."""
    good = encode_record(PLAIN)
    values = list(msgpack.unpackb(good, use_list=False))
    values[at] = wrong
    bad = msgpack.packb(values)
    with pytest.raises((RecordCodecError, ReplayError), match="record 4"):
        load([encode_record(LEVEL), encode_record(topic("t")), good,
              encode_record(partition("t", 1)), bad])  # fmt: skip


def test_a_topic_id_that_is_text_is_still_refused():
    """As long as the bytes, and with the same bytes around it."""
    bad = encode_record(PLAIN).replace(b"\xc4\x10", b"\xd9\x10", 1)
    with pytest.raises(RecordCodecError, match="record 3"):
        load([encode_record(LEVEL), encode_record(topic("t")), encode_record(PLAIN), bad])


@pytest.mark.parametrize("cut", [1, 2, 3, 4, 20, 22, 30])
def test_a_record_that_is_cut_off_or_too_long_is_refused(cut):
    """Wherever it ends."""
    good = encode_record(PLAIN)
    for bad in (good[:cut], good[:-cut], good + bytes(cut)):
        with pytest.raises(RecordCodecError, match="record 3"):
            load([encode_record(LEVEL), encode_record(topic("t")), good, bad])


def test_a_partition_of_no_topic_is_refused_by_its_number():
    """Also when all before it were loaded as one run."""
    records = [LEVEL, topic("t"), partition("t", 0), partition("t", 1), partition("x", 0)]
    with pytest.raises(ReplayError, match=r"record 4: partition 0 of no topic"):
        load([encode_record(each) for each in records])


def test_a_decoder_that_does_not_know_the_version_refuses_it():
    """An older release's decoder has the last word on each head."""

    def older(value):
        if value[2:3] == b"\x02":
            raise UnknownRecordError("version 2", api_key=3, version=2)
        return decode_record(value)

    newer = partition("t", 1, eligible_leader_replicas=(3,))
    values = [encode_record(each) for each in (LEVEL, topic("t"), PLAIN, newer)]
    with pytest.raises(UnknownRecordError, match="record 3"):
        load(values, decode=older)


def test_kafkas_framing_is_loaded_record_by_record():
    """The same image from the other codec."""
    records = [LEVEL, topic("t"), *(partition("t", number) for number in range(3))]
    found = load(
        [encode_kafka(each, 2 if each.API_KEY == 3 else None) for each in records], footer=b""
    )
    assert found.image.topics == replayed(records).topics


def test_the_same_bytes_behind_another_head_are_decoded_anew():
    """Of a version with fewer fields the rest is unknown, and is kept."""
    good = encode_record(partition("t", 1, eligible_leader_replicas=(3,)), 2)
    other = good[:2] + b"\x00" + b"\x02" + good[4:]
    loaded = load([encode_record(LEVEL), encode_record(topic("t")), good, other]).image
    assert loaded.topics.partition(b"t" * 16, 1).elr == (3,)
    assert loaded.topics.partition(b"t" * 16, 2).elr == ()
    assert loaded.extras[3, b"t" * 16, 2].trailing == (PLAIN.directories, (3,), None)


def test_an_image_with_partitions_is_not_loaded_into():
    """Its indexes exist, and would not learn of them."""
    base = replayed([LEVEL, topic("t"), partition("t", 0)])
    assert ImageDelta(EMPTY_IMAGE).open_topics().may_load(b"t" * 16) is False
    assert ImageDelta(base).open_topics().may_load(b"t" * 16) is False


def test_a_state_is_known_by_all_its_fields_in_their_order() -> None:
    """Goal: no record gets the state of another. Method: one value in each field in turn."""
    lists = ("replicas", "isr", "removing_replicas", "adding_replicas")
    elrs = ("eligible_leader_replicas", "last_known_elr")
    numbers = ("leader", "leader_recovery_state", "leader_epoch", "partition_epoch")
    plain = PartitionRecord(0, b"t" * 16, (1,), (1,), (1,), (1,), eligible_leader_replicas=(1,))
    records = [replace(plain, partition_id=1, last_known_elr=None, directories=(b"d" * 16,))]
    records += [replace(plain, **{name: (2,)}) for name in (*lists, *elrs)]
    records += [replace(plain, **{name: 7}) for name in numbers]
    for at, record in enumerate(records * 2):
        records_of_a_topic = [replace(record, partition_id=at), replace(plain, partition_id=99)]
        (run,) = runs_of(records_of_a_topic)
        assert isinstance(run, PartitionRun)
        assert run.states == {at: state_of(record), 99: state_of(plain)}
        assert runs_of(records_of_a_topic)[0].states[at] is run.states[at]

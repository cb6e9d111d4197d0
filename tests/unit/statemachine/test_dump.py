"""A dump is canonical, and replaying it gives the image back."""

from __future__ import annotations

import os
import random
import subprocess
import sys

import pytest

from statemachine.codec import decode_record, encode_record
from statemachine.codec_kafka import FRAME_VERSION
from statemachine.delta import ImageDelta
from statemachine.dump import (
    DigestedValues,
    count_records,
    dump_records,
    dump_values,
    state_digest,
)
from statemachine.image import EMPTY_IMAGE
from statemachine.records import (
    BrokerEpochRecord,
    ConfigRecord,
    Extra,
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from tests.support.record_strategies import World

A, B = b"a" * 16, b"b" * 16


def image_of(records, base=EMPTY_IMAGE):
    delta = ImageDelta(base)
    for record in records:
        delta.replay(record)
    return delta.finish()


def world_image(seed, steps=120):
    return image_of(World(seed, reuses_names=True).steps(steps))


@pytest.mark.parametrize("kafka", [False, True])
def test_a_topic_that_came_back_within_a_delta_is_dumped(kafka):
    """Goal: what a replay puts into the image has the types of records, so it can be written."""
    config = ConfigRecord(2, "t", "retention.ms", "1")
    image = image_of(
        [TopicRecord("t", A), config, RemoveTopicRecord(A), TopicRecord("t", B), config]
    )
    loaded = image_of([decode_record(value) for value in dump_values(image, kafka=kafka)])
    assert state_digest(loaded) == state_digest(image)


@pytest.mark.parametrize("kafka", [False, True])
def test_the_highest_broker_epoch_survives_its_broker(kafka):
    """Goal: a loaded checkpoint and a replayed log allocate the same next epoch.

    Method: of brokers 7, 8 and 9 the last, whose epoch is the highest, is unregistered.
    """
    brokers = [RegisterBrokerRecord(each, broker_epoch=100 + each) for each in (7, 8, 9)]
    image = image_of([*brokers, UnregisterBrokerRecord(9, 109)])
    loaded = image_of([decode_record(value) for value in dump_values(image, kafka=kafka)])
    assert loaded.cluster.highest_broker_epoch == 109
    assert state_digest(loaded) == state_digest(image)


@pytest.mark.parametrize("seed", range(30))
def test_replaying_a_dump_gives_an_equal_image(seed):
    image = world_image(seed)
    values = list(dump_values(image))
    again = image_of([decode_record(value) for value in values])
    assert again == image
    assert again.topics.isr_index == image.topics.isr_index
    assert list(dump_values(again)) == values
    assert state_digest(again) == state_digest(image)
    assert count_records(image) == len(values)


@pytest.mark.parametrize("seed", range(10))
def test_a_kafka_dump_holds_all_that_the_native_one_does(seed):
    image = world_image(seed)
    values = list(dump_values(image, kafka=True))
    assert {value[0] for value in values} == {FRAME_VERSION}
    assert count_records(image) == len(values)
    assert image_of(map(decode_record, values)) == image


@pytest.mark.parametrize("seed", range(10))
def test_the_order_of_history_does_not_show(seed):
    """Load the dumped records of a world in any order that replay allows."""
    image = world_image(seed)
    records = list(dump_records(image))
    shuffled = [record for record in records if not isinstance(record, TopicRecord)]
    random.Random(seed).shuffle(shuffled)
    topics = [record for record in records if isinstance(record, TopicRecord)]
    random.Random(seed).shuffle(topics)
    assert state_digest(image_of([*topics, *shuffled])) == state_digest(image)


def test_any_difference_changes_the_digest():
    image = world_image(5)
    digests = {state_digest(image), state_digest(EMPTY_IMAGE)}
    for changed in (
        ConfigRecord(4, "", "zz", "1"),
        ConfigRecord(4, "", "zz", "2"),
        BrokerEpochRecord(10_000),
        TopicRecord("zz", A),
        TopicRecord("zz", A, extra=Extra((1,))),
    ):
        digests.add(state_digest(image_of([changed], image)))
    assert len(digests) == 7


def test_section_order_and_sorting():
    image = image_of(
        [
            ConfigRecord(4, "1", "b", "1"),
            ConfigRecord(2, "zebra", "a", "1"),
            TopicRecord("zebra", A),
            PartitionRecord(33, A, (1,), (1,), leader=1),
            PartitionRecord(2, A, (1,), (1,), leader=1),
            TopicRecord("ant", B),
            RegisterBrokerRecord(2, broker_epoch=5),
            FeatureLevelRecord("a.feature", 1),
            FeatureLevelRecord("metadata.version", 25),
        ]
    )
    seen = [(type(record).__name__, *record.record_key()[1:]) for record in dump_records(image)]
    assert seen == [
        ("FeatureLevelRecord", "metadata.version"),
        ("FeatureLevelRecord", "a.feature"),
        ("RegisterBrokerRecord", 2),
        ("TopicRecord", B),
        ("TopicRecord", A),
        ("PartitionRecord", A, 2),
        ("PartitionRecord", A, 33),
        ("ConfigRecord", 2, "zebra", "a"),
        ("ConfigRecord", 4, "1", "b"),
        ("BrokerEpochRecord",),
    ]


@pytest.mark.parametrize(("level", "version"), [(7, 0), (17, 1), (25, 2)])
def test_record_versions_follow_the_feature_level(level, version):
    image = image_of(
        [
            FeatureLevelRecord("metadata.version", level),
            TopicRecord("t", A),
            PartitionRecord(0, A, (1,), (1,), leader=1),
        ]
    )
    assert list(dump_values(image))[-1] == encode_record(
        PartitionRecord(0, A, (1,), (1,), leader=1), version
    )


def test_unknown_fields_reach_the_checkpoint_until_their_record_is_replaced():
    def dumped(*records):
        return [r.extra for r in dump_records(image_of(records)) if isinstance(r, ConfigRecord)]

    newer = ConfigRecord(2, "t", "k", "v", extra=Extra(("new",)))
    assert dumped(newer) == [Extra(("new",))]
    assert dumped(newer, ConfigRecord(2, "t", "k", "w")) == [None]
    assert dumped(newer, ConfigRecord(2, "t", "k", None), ConfigRecord(2, "t", "k", "v")) == [None]


def test_digest_is_taken_on_the_way_to_the_file():
    image = world_image(1)
    values = DigestedValues(image)
    assert list(values) == list(dump_values(image))
    assert values.digest() == state_digest(image)
    framed = DigestedValues(image, kafka=True)
    assert list(framed) == list(dump_values(image, kafka=True))
    assert framed.digest() == state_digest(image)


def test_hash_order_does_not_show():
    """Two processes with different string hashing dump the same bytes."""
    script = (
        "import importlib.util, sys\n"
        f"spec = importlib.util.spec_from_file_location('dump_test', {__file__!r})\n"
        "module = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
        "print(module.state_digest(module.world_image(7)).hex())\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert found == {state_digest(world_image(7)).hex() + "\n"}

"""Partitions that are encoded by parts have the bytes that the codec writes for their records."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from statemachine import dumped_partitions
from statemachine.codec_native import encode_native
from statemachine.delta import ImageDelta
from statemachine.dump import dump_native, dump_records
from statemachine.image import EMPTY_IMAGE
from statemachine.records import (
    ConfigRecord,
    Extra,
    PartitionRecord,
    TopicRecord,
    lowest_version,
    record_version,
)
from tests.support.record_strategies import World

A, B = b"a" * 16, b"b" * 16
NUMBERS = (0, 1, 127, 128, 255, 256, 65_535, 65_536, 1 << 30)
STATES = (
    {},
    {"leader_epoch": 128, "partition_epoch": 70_000},
    {"isr": (1,)},
    {"removing_replicas": (3,), "adding_replicas": (4,)},
    {"directories": (A, B, A)},
    {"eligible_leader_replicas": (2,)},
    {"last_known_elr": (3,), "leader": -1, "leader_recovery_state": 1},
)


def image_of(records):
    delta = ImageDelta(EMPTY_IMAGE)
    for record in records:
        delta.replay(record)
    return delta.finish()


def one_by_one(image, version_of, shown=lambda record: record):
    return [encode_native(each, version_of(each)) for each in map(shown, dump_records(image))]


def record_at(metadata_version, record):
    return record_version(record, metadata_version)


VERSIONS = [lowest_version, *(partial(record_at, level) for level in (0, 7, 17, 25, 33))]


def many_states():
    plain = PartitionRecord(0, A, (1, 2, 3), (1, 2, 3), leader=1, leader_epoch=3, partition_epoch=4)
    for topic_id in (A, B):
        yield TopicRecord(topic_id.decode(), topic_id)
        for at, number in enumerate(NUMBERS):
            for step, state in enumerate(STATES):
                place = (number + at * len(STATES) + step) & ((1 << 31) - 1)
                yield replace(plain, partition_id=place, topic_id=topic_id, **state)


@pytest.mark.parametrize("version_of", VERSIONS)
@pytest.mark.parametrize("known_max", [1, 3, 1 << 16])
def test_numbers_and_states_of_every_form(monkeypatch, version_of, known_max):
    monkeypatch.setattr(dumped_partitions, "KNOWN_MAX", known_max)
    image = image_of(many_states())
    assert image.topics.partition_count > 60
    assert list(dump_native(image, version_of)) == one_by_one(image, version_of)


@pytest.mark.parametrize("seed", range(20))
def test_any_image(seed):
    with_extras = image_of(World(seed, reuses_names=True).steps(120))
    without = image_of(replace(each, extra=None) for each in dump_records(with_extras))
    assert not without.extras
    for image in (with_extras, without):
        for version_of in VERSIONS:
            assert list(dump_native(image, version_of)) == one_by_one(image, version_of)


@pytest.mark.parametrize("extra", [None, Extra((1,))])
def test_what_is_shown_in_place_of_a_record_is_encoded(extra):
    def shown(record):
        return replace(record, value="shown") if isinstance(record, ConfigRecord) else record

    image = image_of(
        [
            TopicRecord("t", A, extra=extra),
            PartitionRecord(0, A),
            ConfigRecord(4, "", "k", "hidden"),
        ]
    )
    values = list(dump_native(image, lowest_version, shown))
    assert values == one_by_one(image, lowest_version, shown)
    assert not any(b"hidden" in value for value in values)

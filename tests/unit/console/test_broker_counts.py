"""Counts of partitions by broker are those of the image, also after a change."""

from __future__ import annotations

import pytest

from quorate.console.broker_counts import BrokerCounts
from statemachine.image import EMPTY_IMAGE, MetadataImage
from statemachine.records import PartitionChangeRecord
from statemachine.sections.partition_index import PartitionSet
from tests.support.image_builder import replayed, small_cluster, topic_id


def counted(counts: BrokerCounts, image: MetadataImage) -> dict[int, tuple[int, int]]:
    return {each: (counts.led(image, each), counts.in_sync(image, each)) for each in (1, 2, 3, 4)}


def expected(image: MetadataImage) -> dict[int, tuple[int, int]]:
    topics = image.topics
    return {each: (len(topics.led_by(each)), len(topics.in_isr_of(each))) for each in (1, 2, 3, 4)}


def test_they_follow_the_image() -> None:
    counts, image = BrokerCounts(), small_cluster()
    assert counted(counts, image) == expected(image)
    moved = replayed(
        PartitionChangeRecord(partition_id=0, topic_id=topic_id(1), isr=(2, 3), leader=2),
        base=image,
    )
    assert expected(moved) != expected(image)
    assert counted(counts, moved) == expected(moved)
    assert counted(counts, image) == expected(image)


def test_an_unchanged_broker_is_not_counted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, image = BrokerCounts(), small_cluster()
    first = counted(counts, image)
    monkeypatch.delattr(PartitionSet, "__len__")
    assert counted(counts, image) == first


def test_brokers_that_are_gone_are_forgotten() -> None:
    counts, image = BrokerCounts(), small_cluster()
    counted(counts, image)
    counts.forget_others(EMPTY_IMAGE)
    assert not counts._known

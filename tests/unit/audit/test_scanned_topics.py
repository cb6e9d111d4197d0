"""A reader's topics have the effects of a replica's, scanned or indexed, and left out if unused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from audit.directory import plan_source
from audit.reader import read_tables
from audit.replay import batches_of
from audit.scan import Scan
from audit.schema import PARTITIONS, TABLES, TYPED_TABLES
from statemachine.image import EMPTY_IMAGE
from statemachine.records import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
)
from statemachine.sections import scanned_topics
from statemachine.sections.scanned_topics import ScannedTopics
from statemachine.sections.topics_delta import TopicsDelta
from statemachine.sections.tracking import ChangeTracker
from tests.support.audit_log import AuditLog


@pytest.fixture(params=range(3))
def log(tmp_path: Path, request: pytest.FixtureRequest) -> AuditLog:
    log = AuditLog(tmp_path / "node", segment_bytes=3000)
    log.elect(1)
    log.world(request.param, 60, reuses_names=True)
    log.commit()
    return log


@pytest.mark.parametrize("scanned_max", [0, 3, 20_000])
def test_the_image_is_that_of_a_replica(
    log: AuditLog, monkeypatch: pytest.MonkeyPatch, scanned_max: int
) -> None:
    """Goal: one effect per record. Method: a limit passed at once, later, and never."""
    monkeypatch.setattr(scanned_topics, "SCANNED_MAX", scanned_max)
    plan = plan_source(log.home)
    scan = Scan(EMPTY_IMAGE)
    for batch in batches_of(plan, 0, plan.end_offset):
        scan.take(batch)
    image, expected = scan.image(), log.images[plan.end_offset]
    assert image == expected
    assert image.topics.isr_index == expected.topics.isr_index
    assert image.topics.leader_index == expected.topics.leader_index
    assert image.topics.partition_count == expected.topics.partition_count


def test_other_tables_are_the_same_without_partitions(log: AuditLog) -> None:
    plan = plan_source(log.home)
    others = [table for table in TYPED_TABLES if table != PARTITIONS]
    whole = read_tables(plan, TABLES)
    assert read_tables(plan, others) == {table: whole[table] for table in others}
    assert any(whole[table].num_rows for table in others)
    assert read_tables(plan, [PARTITIONS]) == {PARTITIONS: whole[PARTITIONS]}


def test_a_lookup_by_broker_sees_each_change() -> None:
    """Goal: what was scanned is not used behind a change. Method: ask between any two records."""
    tracker = ChangeTracker(EMPTY_IMAGE.extras)
    scanned = ScannedTopics(EMPTY_IMAGE.topics, tracker)
    indexed = TopicsDelta(EMPTY_IMAGE.topics, tracker)
    topic_id = b"\x40" * 16
    steps: list[Callable[[TopicsDelta], object]] = [
        lambda topics: topics.replay_topic(TopicRecord("t", topic_id)),
        lambda topics: topics.replay_partition(
            topic_id, 0, PartitionRecord(replicas=(1, 2), isr=(1, 2), leader=1)
        ),
        lambda topics: topics.replay_partition(
            topic_id, 1025, PartitionRecord(replicas=(2, 3), isr=(2, 3), leader=2)
        ),
        lambda topics: topics.replay_change(
            topic_id, 0, PartitionChangeRecord(isr=(2,), leader=2, eligible_leader_replicas=(1,))
        ),
        lambda topics: topics.replay_change(topic_id, 1025, PartitionChangeRecord(leader=-1)),
        lambda topics: topics.replay_clear_elr(ClearElrRecord("t")),
        lambda topics: topics.replay_removal(topic_id),
    ]
    for step in steps:
        step(scanned)
        step(indexed)
        for broker in (1, 2, 3):
            for lookup in ("in_isr_of", "led_by", "eligible_of"):
                assert list(getattr(scanned, lookup)(broker)) == list(
                    getattr(indexed, lookup)(broker)
                ), (lookup, broker)
        assert list(scanned.without_leader()) == list(indexed.without_leader())
    assert scanned.settle() == indexed.settle() == EMPTY_IMAGE.topics

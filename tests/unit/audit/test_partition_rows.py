"""Rows of partitions that are made as columns are those made one by one, in the same order."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from audit.directory import plan_source
from audit.reader import TableRows
from audit.replay import scan_range
from audit.schema import PARTITIONS, TABLES
from statemachine.records import (
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from statemachine.sections.scanned_topics import ScannedTopics
from tests.support.audit_log import AuditLog

TOPIC = b"\x40" * 16


def rows(
    log: AuditLog, *, grouped: bool, at_least: int, bounds: tuple[int, int]
) -> dict[str, list[object]]:
    """Return the rows of all tables, taken whenever there are so many of a table."""
    plan = plan_source(log.home)
    collected = TableRows(plan, TABLES, start_offset=bounds[0], end_offset=bounds[1])
    found: dict[str, list[object]] = {table: [] for table in TABLES}

    def take(least: int) -> None:
        for table, taken in found.items():
            batch = collected.take(table, at_least=least)
            taken += [] if batch is None else batch.to_pylist()

    for item in scan_range(plan, *bounds, grouped=grouped):
        collected.add(item)
        take(at_least)
    take(1)
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("at_least", [1, 7, 10_000])
def test_rows_are_those_made_one_by_one(seed: int, at_least: int, tmp_path: Path) -> None:
    """Some batches are grouped and some are not, so that their rows alternate."""
    log = AuditLog(tmp_path / "node", segment_bytes=3000)
    log.elect(1)
    world = log.world(seed, 60, reuses_names=True)
    log.checkpoint()
    log.more(world, 60)
    log.commit()
    for bounds in ((0, log.end), (log.end // 2, log.end - 3)):
        one_by_one = rows(log, grouped=False, at_least=at_least, bounds=bounds)
        assert rows(log, grouped=True, at_least=at_least, bounds=bounds) == one_by_one
        assert one_by_one[PARTITIONS]


def test_a_batch_that_changes_a_partition_twice_has_both_states(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "node")
    log.elect(1)
    log.command(
        TopicRecord("orders", TOPIC),
        *(
            PartitionRecord(number, TOPIC, (1, 2, 3), (1, 2, 3), leader=1, leader_epoch=0)
            for number in range(2)
        ),
    )
    log.command(
        PartitionChangeRecord(0, TOPIC, leader=2), PartitionChangeRecord(1, TOPIC, leader=3)
    )
    log.command(
        PartitionChangeRecord(0, TOPIC, leader=3), PartitionChangeRecord(0, TOPIC, leader=1)
    )
    log.commit()
    plan = plan_source(log.home)
    items = list(scan_range(plan, 0, plan.end_offset, grouped=True))
    groups = [getattr(item, "partitions", None) for item in items]
    assert [None if group is None else len(group.topics) for group in groups] == [
        None, None, 2, 2,
    ]  # fmt: skip
    collected = TableRows(plan, [PARTITIONS])
    for item in items:
        collected.add(item)
    batch = collected.take(PARTITIONS, names=["offset", "partition", "leader", "leader_epoch"])
    assert isinstance(batch, pa.RecordBatch)
    assert [tuple(row.values()) for row in batch.to_pylist()] == [
        (2, 0, 1, 0), (3, 1, 1, 0),
        (4, 0, 2, 1), (5, 1, 3, 1),
        (6, 0, 3, 2), (7, 0, 1, 3),
    ]  # fmt: skip


def test_a_topic_id_that_gets_another_name_has_each_name_in_its_time(tmp_path: Path) -> None:
    """No controller does that, but a log may say so: names are not remembered for ever."""
    log = AuditLog(tmp_path / "node")
    log.elect(1)
    for name in ("orders", "clicks"):
        log.command(
            TopicRecord(name, TOPIC),
            PartitionRecord(0, TOPIC, (1, 2), (1, 2), leader=1, leader_epoch=0),
        )
        log.command(PartitionChangeRecord(0, TOPIC, leader=2))
        log.command(RemoveTopicRecord(TOPIC))
    log.commit()
    found = rows(log, grouped=True, at_least=1, bounds=(0, log.end))
    assert found == rows(log, grouped=False, at_least=1, bounds=(0, log.end))
    names = [row["topic"] for row in found[PARTITIONS] if row["record_type"].startswith("Part")]
    assert names == ["orders", "orders", "clicks", "clicks"]


def test_a_name_is_looked_up_once_while_no_topic_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A configuration between changes of partitions makes no name unknown."""
    log = AuditLog(tmp_path / "node")
    log.elect(1)
    partition = PartitionRecord(0, TOPIC, (1, 2), (1, 2), leader=1, leader_epoch=0)
    log.command(TopicRecord("orders", TOPIC), partition)
    for number in range(20):
        log.command(PartitionChangeRecord(0, TOPIC, leader=1 + number % 2))
        log.command(ConfigRecord(2, "orders", "a", str(number)))
    log.commit()
    looked_up = []
    name_of = ScannedTopics.name_of

    def counted(topics: ScannedTopics, topic_id: bytes) -> str | None:
        looked_up.append(topic_id)
        return name_of(topics, topic_id)

    plan = plan_source(log.home)
    monkeypatch.setattr(ScannedTopics, "name_of", counted)
    changes = list(scan_range(plan, 2, log.end, grouped=True))
    assert len(looked_up) < 10
    assert len(changes) > 40

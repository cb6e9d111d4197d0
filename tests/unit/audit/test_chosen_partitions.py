"""A question about one topic replays no other topic's partitions, and gets the same rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from audit import chosen_partitions, questions
from audit.database import database_of_log
from audit.directory import plan_source
from audit.plan import ReadPlan
from audit.reader import read_tables
from audit.schema import PARTITIONS
from quorum.batch import Record
from statemachine.codec import decode_record
from statemachine.records import (
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tests.support.audit_answers import trimmed_log
from tests.support.audit_log import AuditLog

OLD, NEW, OTHER = b"\x51" * 16, b"\x52" * 16, b"\x53" * 16


def rows_of(plan: ReadPlan, topic: str, start: int, *, chosen: bool) -> pa.Table:
    tables = read_tables(plan, [PARTITIONS], start, topic=topic if chosen else None)
    found = tables[PARTITIONS].filter(pc.field("topic") == topic)
    # A derived change is numbered among those that were derived.
    at = found.select(["offset", "change_index"]).to_pylist()
    assert at == sorted(at, key=lambda row: (row["offset"], row["change_index"]))
    return found.drop_columns("change_index")


def topics_of(plan: ReadPlan) -> list[str]:
    return sorted(set(read_tables(plan, ["topics"])["topics"]["topic"].to_pylist()))


@pytest.mark.parametrize("seed", [3, 8, 20])
def test_the_rows_of_a_topic_are_those_of_a_whole_replay(seed: int, tmp_path: Path) -> None:
    """Goal: also from the middle of the log on, with a checkpoint there, and behind a baseline."""
    log = AuditLog(tmp_path / "node", segment_bytes=3000)
    log.elect(1)
    world = log.world(seed, 80, reuses_names=True)
    log.checkpoint()
    middle = log.end
    log.more(world, 80)
    log.commit()
    compared = 0
    for home, starts in ((log.home, (0, middle)), (trimmed_log(tmp_path / "trimmed").home, (0,))):
        plan = plan_source(home)
        for topic in topics_of(plan):
            for start in starts:
                found = rows_of(plan, topic, start, chosen=True)
                assert found.equals(rows_of(plan, topic, start, chosen=False)), (topic, start)
                compared += found.num_rows
    assert compared > 50


@pytest.fixture
def log(tmp_path: Path) -> AuditLog:
    """A topic that is deleted and created again, beside another one."""
    log = AuditLog(tmp_path / "node")
    log.elect(1)
    for topic_id, name in ((OLD, "orders"), (OTHER, "clicks")):
        log.command(
            TopicRecord(name, topic_id), PartitionRecord(0, topic_id, (1, 2), (1, 2), leader=1)
        )
    for topic_id in (OLD, OTHER):
        log.command(PartitionChangeRecord(0, topic_id, leader=2))
    # The id of another topic stands where it means something else.
    log.command(PartitionChangeRecord(0, OTHER, directories=(OLD, NEW)))
    log.command(RemoveTopicRecord(OLD))
    log.command(BeginTransactionRecord("again"), TopicRecord("orders", NEW))
    log.command(PartitionRecord(0, NEW, (1, 2), (1, 2), leader=2))
    log.command(PartitionChangeRecord(0, OTHER, leader=1), EndTransactionRecord())
    log.command(PartitionChangeRecord(0, NEW, leader=1))
    log.commit()
    return log


def test_a_topic_has_the_rows_of_all_its_ids(log: AuditLog) -> None:
    plan = plan_source(log.home)
    found = read_tables(plan, [PARTITIONS], topic="orders")[PARTITIONS]
    assert set(found["topic"].to_pylist()) == {"orders"}
    assert found.drop_columns("change_index").equals(rows_of(plan, "orders", 0, chosen=False))
    assert found.select(["leader", "change"]).to_pylist() == [
        {"leader": leader, "change": change}
        for leader, change in ((1, "set"), (2, "set"), (None, "delete"), (2, "set"), (1, "set"))
    ]


def test_the_records_of_others_are_not_decoded(
    log: AuditLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: a question about few partitions of many takes little time."""
    seen: list[MetadataRecord] = []

    def noted(record: Record) -> MetadataRecord:
        seen.append(decode_record(record.value or b""))
        return seen[-1]

    monkeypatch.setattr("audit.scan._decode", noted)
    read_tables(plan_source(log.home), [PARTITIONS], topic="orders")
    of_others = [each for each in seen if getattr(each, "topic_id", None) == OTHER]
    # The topic, and the record that has an id of the asked one in it.
    assert [type(each) for each in of_others] == [TopicRecord, PartitionChangeRecord]


def test_kept_rows_come_first(
    log: AuditLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: few rows are not kept, as they would look like all; kept ones are read instead."""
    cache = tmp_path / "cache"
    cache.mkdir()
    plan = plan_source(log.home)
    query = questions.leadership_timeline(topic="orders")
    with database_of_log(plan, [PARTITIONS], topic="orders", cache=cache) as found:
        few = found.ask(query)
    assert list(cache.iterdir()) == []
    assert few.num_rows == 4
    with database_of_log(plan, [PARTITIONS], cache=cache) as found:
        assert found.ask(query).equals(few)
        assert found.ask(questions.whole_table(PARTITIONS)).num_rows > few.num_rows

    def refused(*_: object) -> None:
        raise AssertionError("replayed")

    monkeypatch.setattr(chosen_partitions.ChosenPartitions, "decode", refused)
    with database_of_log(plan, [PARTITIONS], topic="orders", cache=cache) as found:
        assert found.ask(query).equals(few)

"""A read in parts gives the rows of a whole read, wherever it is split and whatever is selected."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import StructType

from audit.directory import plan_source
from audit.history_rows import HistoryWanted
from audit.plan import REPLAY_SHARE, CheckpointFile, ReadPlan, SegmentFile
from audit.reader import needs_state
from audit.schema import HISTORY, TABLES, columns
from audit.source import ClusterMetadataSource
from audit.source_reader import TASK_OFFSETS_MIN, Question
from quorum.types import OffsetAndEpoch
from statemachine.records import RECORD_TYPES
from tests.support.audit_answers import trimmed_log
from tests.support.audit_log import AuditLog, table_rows


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> AuditLog:
    return trimmed_log(tmp_path_factory.mktemp("logs") / "trimmed")


@pytest.fixture(scope="module")
def one_segment(tmp_path_factory: pytest.TempPathFactory) -> AuditLog:
    log = AuditLog(tmp_path_factory.mktemp("logs") / "whole")
    log.elect(1)
    log.world(5, 120)
    log.commit()
    return log


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("count", [1, 2, 3, 7, 40])
def test_the_parts_add_up(table: str, count: int, log: AuditLog, one_segment: AuditLog) -> None:
    for each in (log, one_segment):
        plan = plan_source(each.home)
        parts = plan.splits(0, plan.end_offset, count, replay_share=REPLAY_SHARE)
        assert [start for start, _ in parts] == [0, *(end for _, end in parts[:-1])]
        assert parts[-1][1] == plan.end_offset
        found = [row for part in parts for row in table_rows(plan, table, *part)]
        assert found == table_rows(plan, table)


def test_parts_of_one_segment_cost_the_same() -> None:
    end = 300_000
    plan = ReadPlan("log", end_offset=end, segments=(SegmentFile("f", 0, 0, end),))
    assert plan.splits(0, end, 4) == [(start, start + 75_000) for start in range(0, end, 75_000)]
    parts = plan.splits(0, end, 4, replay_share=0.3)
    costs = [0.3 * start + (end - start) for start, end in parts]
    assert len(parts) == 4
    assert max(costs) - min(costs) < 2
    assert plan.splits(10, 12, 9) == [(10, 11), (11, 12)]
    assert plan.splits(10, 10, 4) == []


def test_parts_follow_the_length_of_files_and_leave_the_baseline_whole() -> None:
    plan = ReadPlan(
        "log",
        start_offset=500,
        end_offset=2000,
        segments=(SegmentFile("a", 500, 500, 1000), SegmentFile("b", 1000, 1000, 2000)),
        checkpoints=(CheckpointFile("c", OffsetAndEpoch(1000, 1)),),
    )
    assert plan.splits(0, 2000, 2) == [(0, 1000), (1000, 2000)]
    assert plan.splits(0, 2000, 4) == [(0, 1000), (1000, 1500), (1500, 2000)]


def test_the_number_of_tasks_follows_the_offsets() -> None:
    plan = ReadPlan("log", end_offset=10**6, segments=(SegmentFile("f", 0, 0, 10**6),))
    question = Question(HISTORY)
    assert len(question.splits(plan, 0, TASK_OFFSETS_MIN)) == 1
    assert len(question.splits(plan, 0, 2 * TASK_OFFSETS_MIN)) == 2
    assert len(question.splits(plan, 0, 10**6)) == 2
    assert len(Question(HISTORY, ("ConfigRecord",)).splits(plan, 0, 10**6)) == 4
    assert len(Question(HISTORY, tasks=9).splits(plan, 0, 1000)) == 9


@pytest.mark.parametrize(
    "name", [row.record_class.__name__ for row in RECORD_TYPES.values()] + ["LeaderChange"]
)
def test_a_type_read_without_the_state_has_the_same_rows(
    name: str, log: AuditLog, one_segment: AuditLog
) -> None:
    for each in (log, one_segment):
        plan = plan_source(each.home)
        whole = [row for row in table_rows(plan, HISTORY) if row["record_type"] == name]
        parts = plan.splits(0, plan.end_offset, 5)
        found = [row for part in parts for row in table_rows(plan, HISTORY, *part, types=[name])]
        assert found == whole


def test_types_that_depend_on_the_state() -> None:
    assert needs_state("topics")
    assert needs_state(HISTORY)
    assert needs_state(HISTORY, ["ConfigRecord", "PartitionRecord"])
    assert needs_state(HISTORY, ["PartitionChangeRecord"])
    assert needs_state(HISTORY, ["RemoveTopicRecord"])
    assert not needs_state(HISTORY, ["ConfigRecord", "TopicRecord", "LeaderChange"])
    assert not HistoryWanted(0, 1, frozenset({"BrokerFencedEvent"})).needs_state


def source(**options: str) -> ClusterMetadataSource:
    return ClusterMetadataSource(CaseInsensitiveDict(options))


def rows_of(**options: str) -> list[dict[str, Any]]:
    reader = source(**options).reader(StructType([]))
    return [
        row for part in reader.partitions() for batch in reader.read(part)
        for row in batch.to_pylist()
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("table", "with_as_of"), [(HISTORY, False), ("partitions", False), ("partitions", True)]
)
def test_selected_columns(table: str, with_as_of: bool, log: AuditLog) -> None:
    options = {"path": str(log.home), "table": table, "minPartitions": "6"}
    if with_as_of:
        options["asOfOffset"] = str(log.end)
    names = ("offset", "topic", "append_time")
    selected = source(**options, columns=" topic,offset, append_time").schema()
    assert selected == "`offset` bigint, `append_time` timestamp, `topic` string"
    found = rows_of(**options, columns="topic,append_time,offset")
    assert found == [{name: row[name] for name in names} for row in rows_of(**options)]
    assert [*found[0]] == ["offset", "append_time", "topic"]


def test_without_the_payload_no_other_column_changes(log: AuditLog) -> None:
    names = [column.name for column in columns(HISTORY) if column.name != "payload"]
    found = rows_of(path=str(log.home), columns=",".join(names))
    whole = rows_of(path=str(log.home))
    assert found == [{name: row[name] for name in names} for row in whole]
    assert all(row["payload"] for row in whole)

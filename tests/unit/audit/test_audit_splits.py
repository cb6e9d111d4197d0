"""A read in parts gives the rows of a whole read, wherever it is split and whatever is selected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import StructType

from audit.directory import plan_source
from audit.history_rows import HistoryWanted
from audit.plan import CheckpointFile, ReadPlan, SegmentFile
from audit.reader import needs_state
from audit.schema import HISTORY, TABLES, columns
from audit.source import ClusterMetadataSource
from audit.source_reader import TASK_OFFSETS_MIN, TASKS_DEFAULT, Question
from audit.splits import ALL_ROWS, Costs, costs_of, default_count, splits
from quorum.errors import CorruptBatchError
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


@pytest.fixture(scope="module")
def with_checkpoints(tmp_path_factory: pytest.TempPathFactory) -> AuditLog:
    """Several segments and three checkpoints, from which tasks may begin."""
    log = AuditLog(tmp_path_factory.mktemp("logs") / "checkpoints", segment_bytes=6000)
    log.elect(1)
    world = log.world(8, 50)
    for epoch in (2, 3, 4):
        log.checkpoint()
        log.elect(epoch)
        log.more(world, 50)
    log.commit()
    return log


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("count", [1, 2, 3, 7, 40])
def test_the_parts_add_up(
    table: str,
    count: int,
    log: AuditLog,
    one_segment: AuditLog,
    with_checkpoints: AuditLog,
) -> None:
    assert len(plan_source(with_checkpoints.home).checkpoints) == 3
    for each in (log, one_segment, with_checkpoints):
        plan = plan_source(each.home)
        parts = splits(plan, 0, plan.end_offset, count, costs_of(table))
        assert [start for start, _ in parts] == [0, *(end for _, end in parts[:-1])]
        assert parts[-1][1] == plan.end_offset
        found = [row for part in parts for row in table_rows(plan, table, *part)]
        assert found == table_rows(plan, table)


def test_a_part_reads_nothing_before_the_entry_at_which_it_begins(tmp_path: Path) -> None:
    """Goal: many tasks do little more than one. Method: the file is damaged in front of a part."""
    log = AuditLog(tmp_path / "log")
    log.elect(1)
    log.world(5, 120)
    log.commit()
    plan = plan_source(log.home)
    (segment,) = plan.segments
    assert len(segment.entries) > 20
    middle = segment.entry(plan.end_offset // 2)
    types = ("ConfigRecord",)
    whole = table_rows(plan, HISTORY, middle.offset, plan.end_offset, types=types)
    assert whole
    with Path(segment.path).open("r+b") as file:
        file.seek(segment.entries[0].position + 70)
        byte = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte[0] ^ 1]))
    assert table_rows(plan, HISTORY, middle.offset, plan.end_offset, types=types) == whole
    with pytest.raises(CorruptBatchError):
        table_rows(plan, HISTORY, 0, middle.offset, types=types)


def one_file(end: int, *checkpoints: int) -> ReadPlan:
    found = tuple(CheckpointFile(f"c{each}", OffsetAndEpoch(each, 1)) for each in checkpoints)
    return ReadPlan(
        "log", end_offset=end, segments=(SegmentFile("f", 0, 0, end),), checkpoints=found
    )


def costs_by_hand(plan: ReadPlan, parts: list[tuple[int, int]], costs: Costs) -> list[float]:
    """What each part costs if it replays from the newest checkpoint below it."""
    ends = [0, *(file.end_offset for file in plan.checkpoints)]
    found = []
    for start, end in parts:
        base = max(each for each in ends if each <= start)
        found.append(end - start + costs.replay * (start - base) + costs.verify * base)
    return found


def test_parts_of_one_segment_cost_the_same() -> None:
    end = 300_000
    plan = one_file(end)
    quarters = [(start, start + 75_000) for start in range(0, end, 75_000)]
    assert splits(plan, 0, end, 4, Costs()) == quarters
    parts = splits(plan, 0, end, 4, Costs(replay=0.3))
    costs = costs_by_hand(plan, parts, Costs(replay=0.3))
    assert len(parts) == 4
    assert max(costs) - min(costs) < 5
    assert splits(plan, 10, 12, 9, Costs()) == [(10, 11), (11, 12)]
    assert splits(plan, 10, 10, 4, Costs()) == []


@pytest.mark.parametrize("tasks", [2, 3, 4, 8])
def test_with_checkpoints_tasks_scale(tasks: int) -> None:
    """Goal: near-linear to as many executors as the log has checkpoints, and more."""
    end = 320_000
    plan = one_file(end, *range(40_000, end, 40_000))
    parts = splits(plan, 0, end, tasks, ALL_ROWS)
    costs = costs_by_hand(plan, parts, ALL_ROWS)
    assert len(parts) == tasks
    assert end / max(costs) > 0.8 * tasks
    # Without what is verified in front of the first one, every cut is at a checkpoint.
    at_checkpoints = splits(plan, 0, end, tasks, Costs(replay=0.4))
    if 8 % tasks == 0:
        step = end // tasks
        assert at_checkpoints == [(start, start + step) for start in range(0, end, step)]


def test_uneven_checkpoints_are_used_where_they_shorten_the_longest_task() -> None:
    end = 300_000
    without = costs_by_hand(one_file(end), splits(one_file(end), 0, end, 4, ALL_ROWS), ALL_ROWS)
    plan = one_file(end, 100_000, 110_000, 260_000)
    parts = splits(plan, 0, end, 4, ALL_ROWS)
    costs = costs_by_hand(plan, parts, ALL_ROWS)
    assert 0.45 * max(without) < max(costs) < 0.75 * max(without)


def test_what_is_before_the_range_counts() -> None:
    """Goal: each task of a range far behind the last checkpoint would replay up to it."""
    end = 1_000_000
    plan, costs = one_file(end, 500_000), Costs(replay=0.4)
    assert default_count(plan, 500_000, 600_000, 4, costs) == 2
    assert default_count(plan, 900_000, end, 4, costs) == 1
    assert default_count(plan, 900_000, end, 4, Costs()) == 4
    assert default_count(plan, end, end, 4, costs) == 1
    assert default_count(plan, 0, end, 0, costs) == 1


def test_parts_may_reach_over_files_and_leave_the_baseline_whole() -> None:
    plan = ReadPlan(
        "log",
        start_offset=500,
        end_offset=2000,
        segments=(SegmentFile("a", 500, 500, 1000), SegmentFile("b", 1000, 1000, 2000)),
        checkpoints=(CheckpointFile("c", OffsetAndEpoch(1000, 1)),),
    )
    assert splits(plan, 0, 2000, 2, Costs()) == [(0, 1250), (1250, 2000)]
    assert splits(plan, 0, 2000, 9, Costs())[0] == (0, 1000)
    # What is verified in front of a range is less at the beginning of a file.
    files = [SegmentFile(str(base), base, base, base + 100) for base in range(0, 400, 100)]
    plan = ReadPlan("log", end_offset=400, segments=tuple(files))
    expected = [(base, base + 100) for base in range(0, 400, 100)]
    assert splits(plan, 0, 400, 4, Costs(verify=0.5)) == expected


def test_the_number_of_tasks_follows_the_offsets_and_what_they_replay() -> None:
    plan = one_file(10**6)
    question = Question(HISTORY)
    assert len(question.splits(plan, 0, TASK_OFFSETS_MIN)) == 1
    assert len(question.splits(plan, 0, 2 * TASK_OFFSETS_MIN)) == 2
    assert len(question.splits(plan, 0, 10**6)) == 2
    assert len(Question("configs").splits(plan, 0, 10**6)) == 1
    assert len(Question(HISTORY, ("ConfigRecord",)).splits(plan, 0, 10**6)) == TASKS_DEFAULT
    assert len(Question(HISTORY, ("LeaderChange",)).splits(plan, 0, 10**6)) == 1
    assert len(Question(HISTORY, tasks=9).splits(plan, 0, 1000)) == 9
    plan = one_file(10**6, *range(0, 10**6, 100_000))
    assert len(question.splits(plan, 0, 10**6)) == TASKS_DEFAULT


@pytest.mark.parametrize(
    "name", [row.record_class.__name__ for row in RECORD_TYPES.values()] + ["LeaderChange"]
)
def test_a_type_read_without_the_state_has_the_same_rows(
    name: str, log: AuditLog, one_segment: AuditLog
) -> None:
    for each in (log, one_segment):
        plan = plan_source(each.home)
        whole = [row for row in table_rows(plan, HISTORY) if row["record_type"] == name]
        parts = splits(plan, 0, plan.end_offset, 5, costs_of(HISTORY, [name]))
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

"""The measured log has checkpoints as a node writes them, and timed tasks give the usual rows."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import StructType

from audit.directory import plan_source
from audit.plan import ReadPlan
from audit.schema import TABLES
from bench.audit_log import add_checkpoints, write_log
from bench.timed_source import TimedSource
from tests.support.audit_log import table_rows


def test_checkpoints_of_the_measured_log_change_no_rows(tmp_path: Path) -> None:
    home = tmp_path / "node"
    write_log(home, 3_000)
    before = plan_source(home)
    add_checkpoints(home, 3)
    plan = plan_source(home)
    ends = [file.end_offset for file in plan.checkpoints]
    assert [round(end / 250) for end in ends] == [3, 6, 9]
    assert ends[0] < plan.end_offset / 4 + 100
    cuts = [0, *(end + 1 for end in ends), plan.end_offset]
    for table in TABLES:
        assert in_parts(plan, table, cuts) == table_rows(before, table)


def in_parts(plan: ReadPlan, table: str, cuts: list[int]) -> list[object]:
    return [row for part in pairwise(cuts) for row in table_rows(plan, table, *part)]


def test_tasks_are_timed_and_give_the_same_rows(tmp_path: Path) -> None:
    home, times = tmp_path / "node", tmp_path / "times"
    times.mkdir()
    end = write_log(home, 3_000)
    options = {"path": str(home), "minPartitions": "3", "table": "configs", "times": str(times)}
    reader = TimedSource(CaseInsensitiveDict(options)).reader(StructType([]))
    parts = reader.partitions()
    rows = [
        row for part in parts for batch in reader.read(part)
        for row in batch.to_pylist()
    ]  # fmt: skip
    assert len(rows) == len(table_rows(plan_source(home), "configs"))
    found = [json.loads(file.read_text(encoding="utf-8")) for file in times.iterdir()]
    assert sorted(each["start"] for each in found) == [part.value[0] for part in parts]
    assert sum(each["rows"] for each in found) == len(rows)
    assert all(each["cpu_s"] > 0 for each in found)
    assert parts[-1].value[1] == end

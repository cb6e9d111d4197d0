"""The measured log is a real one, and every measured command answers from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from audit.directory import plan_source
from bench.audit_log import PARTITIONS_PER_TOPIC, write_log
from bench.audit_queries import measure
from tests.support.audit_log import table_rows


def test_the_log_has_what_questions_ask_about(tmp_path: Path) -> None:
    end = write_log(tmp_path / "node", 3_000)
    assert 3_000 <= end < 3_020
    plan = plan_source(tmp_path / "node")
    assert (plan.end_offset, plan.problems) == (end, ())
    kinds = {row["record_type"] for row in table_rows(plan, "brokers")}
    assert kinds == {"RegisterBrokerRecord", "BrokerFencedEvent", "BrokerUnfencedEvent"}
    assert any(row["is_derived"] for row in table_rows(plan, "partitions"))


@pytest.mark.long
def test_every_command_is_measured(tmp_path: Path) -> None:
    found = {row["name"]: row for row in measure(tmp_path, 400)}
    assert [*found] == [
        "export", "partitions", "leaders of one topic", "configs", "configs of one topic",
        "records by type", "report",
    ]  # fmt: skip
    assert all(isinstance(row["cpu_s"], float) and row["cpu_s"] > 0 for row in found.values())
    assert found["partitions"]["rows"] == PARTITIONS_PER_TOPIC

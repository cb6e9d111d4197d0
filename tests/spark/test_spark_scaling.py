"""The measurement of the Spark source runs on a cluster, and counts what Java and Python take."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.audit_scaling import QUERIES, measure

pytestmark = [pytest.mark.spark, pytest.mark.nightly]


def test_every_query_is_measured_on_a_cluster(tmp_path: Path) -> None:
    figures = measure(tmp_path, records=2_000, checkpoints=3, executors=[2, 1], runs=1)
    found = {(each.query, each.checkpoints, each.executors): each for each in figures}
    assert {query for query, _, _ in found} == {*QUERIES}
    for (query, checkpoints, executors), each in found.items():
        assert len(each.tasks_s) == executors
        assert min(each.tasks_s) > 0
        assert each.rows == found[query, checkpoints, 1].rows == found[query, 0, 1].rows > 0
        assert each.speed_up == sum(found[query, checkpoints, 1].tasks_s) / max(each.tasks_s)

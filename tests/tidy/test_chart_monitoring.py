"""The targets of the chart's ServiceMonitor have the labels that the shipped alerts ask for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.chart import INSECURE, ROOT, one, render
from tests.support.promtool import PROMTOOL
from tests.unit.metrics.test_alert_rules import ALERTS, BEGINS, ENDS, MINUTES, fired, steps

VALUES = {**INSECURE, "serviceMonitor": {"enabled": True}}


def target_labels(pod: int) -> dict[str, str]:
    """What the labels of a pod's target are, after the operator's own and the chart's relabeling.

    The operator begins with the Service's name as the job, the pod's address as the instance.
    """
    monitor: dict[str, Any] = one(render(VALUES), "ServiceMonitor")["spec"]
    labels = {"job": "quorate-nodes", "instance": f"10.0.0.{pod}:9191", "pod": f"quorate-{pod}"}
    if "jobLabel" in monitor:
        service = one(render(VALUES), "Service", "quorate-nodes")
        labels["job"] = service["metadata"]["labels"][monitor["jobLabel"]]
    for each in monitor["endpoints"][0]["relabelings"]:
        assert set(each) == {"targetLabel", "replacement"}, "a form that this test does not know"
        labels[each["targetLabel"]] = each["replacement"]
    return labels


def series(name: str, pod: int) -> str:
    labels = ",".join(f'{key}="{value}"' for key, value in target_labels(pod).items())
    return f"{name}{{{labels}}}"


def test_every_job_that_an_alert_names_is_the_chart_s() -> None:
    rules = yaml.safe_load(ALERTS.read_text("utf-8"))
    named = {
        job
        for group in rules["groups"]
        for rule in group["rules"]
        for job in re.findall(r'job="([^"]*)"', rule["expr"])
    }
    assert named == {target_labels(0)["job"]}


def test_the_scrape_configuration_and_the_chart_have_one_job() -> None:
    scrape = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yaml").read_text("utf-8"))
    (job,) = scrape["scrape_configs"]
    assert job["job_name"] == target_labels(0)["job"]


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed")
def test_one_lost_pod_is_reported_and_no_missing_leader(tmp_path: Path) -> None:
    """A quorum that accepts writes, with one of three pods down for half an hour."""
    up = f"1x{MINUTES}"
    found = {
        series("up", 0): up,
        series("up", 1): up,
        series("up", 2): steps(1, 0),
        series("quorate_raft_can_write", 0): up,
    }
    minutes = BEGINS - 1, ENDS - 1, ENDS + 10
    before, down, after = fired(tmp_path, "QuorateNodeDown", found, *minutes)
    assert before == after == []
    assert len(down) == 1
    assert 'pod="quorate-2"' in down[0]
    assert fired(tmp_path, "QuorateNoLeader", found, *minutes) == [[], [], []]

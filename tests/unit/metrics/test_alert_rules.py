"""The alerts fire when they should: Prometheus' own engine runs them on invented series.

Each rule has a case in which it fires and one in which it has ended again, in one of two clusters
that are monitored together, with observers beside the voters. The other cluster must not fire.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.promtool import PROMTOOL, promtool

ROOT = Path(__file__).resolve().parents[3]
ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yaml"
BEGINS, ENDS, MINUTES = 30, 60, 180
"""Minutes: a case's problem lasts from the first to the second; checks end at the last."""
GONE = f"1x{BEGINS - 1} stale _x{ENDS - BEGINS - 1} 1x{MINUTES - ENDS}"
"""A value that is 1, except that the process is not there while the trouble lasts."""

pytestmark = pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed")


def fired(tmp_path: Path, alert: str, series: dict[str, str], *minutes: int) -> list[list[str]]:
    """For each of the minutes, the labels of each alert that fires; one sample a minute."""
    case = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": [
            {"eval_time": f"{minute}m", "alertname": alert, "exp_alerts": []} for minute in minutes
        ],
    }
    file = tmp_path / "case.yaml"
    # What is JSON is YAML. No alert is expected, so the engine complains of those that fire.
    rules = rules_with_only(alert, tmp_path)
    file.write_text(json.dumps({"rule_files": [str(rules)], "tests": [case]}), encoding="utf-8")
    done = promtool("test", "rules", str(file))
    report = done.stderr.decode()
    assert done.returncode == 0 or f"alertname: {alert}" in report, report
    found: list[list[str]] = []
    for minute in minutes:
        _, _, after = report.partition(f"alertname: {alert}, time: {shown(minute)},")
        got = after.partition("alertname:")[0].partition("got:")[2]
        found.append(re.findall(r"Labels:\{([^}]*)\}", got))
    assert any(found) == bool(done.returncode), report
    return found


def rules_with_only(alert: str, folder: Path) -> Path:
    """The deployed file without the other alerts, which take most of the engine's time."""
    kept = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))
    for group in kept["groups"]:
        group["rules"] = [rule for rule in group["rules"] if rule.get("alert", alert) == alert]
    file = folder / "rules.yaml"
    file.write_text(json.dumps(kept), encoding="utf-8")
    return file


def shown(minute: int) -> str:
    """A time as promtool prints it: 30m, 1h, 1h20m."""
    hours, minutes = divmod(minute, 60)
    return f"{hours}h" * bool(hours) + f"{minutes}m" * bool(minutes or not hours)


def firing(tmp_path: Path, alert: str, series: dict[str, str], minute: int) -> bool:
    return fired(tmp_path, alert, series, minute) != [[]]


def steps(well: float, ill: float) -> str:
    """A value that is ``ill`` while the trouble lasts."""
    return f"{well}x{BEGINS - 1} {ill}x{ENDS - BEGINS - 1} {well}x{MINUTES - ENDS}"


def rising(per_minute: float) -> str:
    """A counter that rises while the trouble lasts."""
    lasts = ENDS - BEGINS
    return f"0x{BEGINS - 1} 0+{per_minute}x{lasts} {per_minute * lasts}x{MINUTES - ENDS}"


def slow(name: str, bound: str, labels: str = "") -> dict[str, str]:
    """A histogram in which all observations during the problem are between ``bound`` and 8 s."""
    return {
        f'{name}_bucket{{le="8"{labels}}}': rising(60),
        f'{name}_bucket{{le="{bound}"{labels}}}': f"0x{MINUTES}",
        f'{name}_bucket{{le="+Inf"{labels}}}': rising(60),
    }


@dataclass(frozen=True)
class Case:
    """What one rule sees in the ill cluster; nodes 1 to 3 are voters, 4 and 5 observers."""

    alert: str
    changes: dict[str, str] = field(default_factory=dict)
    """Series of the ill cluster, without its label; the intact one has none of these."""
    ended_minutes: int = 10
    """So long after the trouble the alert has ended."""


def node(name: str, number: int, labels: str = "") -> str:
    return f'{name}{{instance="n{number}:9191"{labels}}}'


JOB = ',job="quorate"'
CASES = (
    Case("QuorateNoLeader", {node("quorate_raft_can_write", 1): steps(1, 0)}),
    Case("QuorateNodeDown", {node("up", 4, JOB): steps(1, 0)}),
    Case(
        "QuorateMajorityAtRisk",
        {node("up", 3, JOB): steps(1, 0), node("quorate_raft_is_voter", 3): GONE},
    ),
    Case("QuorateLeaderFlaps", {node("quorate_raft_leader_changes_total", 1): rising(1)}, 20),
    Case("QuorateSlowSync", slow("quorate_log_sync_seconds", "0.25", ',instance="n1:9191"')),
    Case("QuorateSlowCommit", slow("quorate_raft_commit_seconds", "0.5", ',instance="n1:9191"')),
    Case(
        "QuorateReplicaLags",
        {
            node("quorate_raft_replica_lag_records", 1, ',replica="4",role="observer"'): steps(
                0, 2e5
            )
        },
    ),
    Case("QuorateObserverStranded", {node("quorate_raft_observers_stranded", 1): steps(0, 1)}),
    Case(
        "QuorateNotApplying",
        {
            node("quorate_applied_lag_records", 2): steps(0, 9),
            node("quorate_applied_end_offset", 2): f"70x{MINUTES}",
        },
    ),
    Case("QuorateMetadataErrors", {node("quorate_metadata_errors_total", 2): rising(1)}, 15),
    Case("QuorateCheckpointStale", {node("quorate_snapshot_failures_total", 2): rising(1)}, 90),
    Case("QuorateDiskLow", {node("quorate_disk_free_bytes", 2): steps(2e9, 5e8)}),
    Case("QuorateCorruptionFound", {node("quorate_scrub_findings_total", 2): rising(1)}, 90),
    Case("QuorateQuarantine", {node("quorate_quarantined_files", 2): steps(0, 1)}),
    Case("QuorateDigestMismatch", {node("quorate_digest_mismatches_total", 2): rising(1)}, 90),
    Case("QuorateVoterDisqualified", {node("quorate_check_ok", 2, ',check="votes"'): steps(1, 0)}),
    Case("QuorateClonesRefused", {node("quorate_raft_clones_refused_total", 2): rising(1)}, 30),
    Case(
        "QuorateImpostorsRefused",
        {node("quorate_raft_impostors_refused_total", 2): rising(1)},
        30,
    ),
    Case("QuorateDiskHangs", {node("quorate_check_ok", 2, ',check="disk_writes"'): steps(1, 0)}),
    Case("QuorateQueueFull", {node("quorate_queue_rejections_total", 2, ',queue="w"'): rising(9)}),
    Case("QuoratePartitionsOffline", {node("quorate_partitions_offline", 2): steps(0, 3)}),
    Case(
        "QuorateProtocolViolations",
        {node("quorate_raft_protocol_violations_total", 2): rising(9)},
        20,
    ),
    Case("QuorateFramesDropped", {node("quorate_raft_frames_dropped_total", 2): rising(9)}, 20),
)


def in_cluster(cluster: str, changes: dict[str, str]) -> dict[str, str]:
    """The series of three voters and two observers, those of ``changes`` instead or besides."""
    series = {}
    for number in range(1, 6):
        is_voter = number <= 3
        series[node("up", number, JOB)] = f"1x{MINUTES}"
        series[node("quorate_raft_is_voter", number)] = f"{int(is_voter)}x{MINUTES}"
        series[node("quorate_raft_voters", number)] = f"3x{MINUTES}"
        series[node("quorate_raft_can_write", number)] = f"{int(number == 1)}x{MINUTES}"
    series |= changes
    return {f'{name[:-1]},cluster="{cluster}"}}': values for name, values in series.items()}


def test_every_alert_has_a_case() -> None:
    rules: Any = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))
    names = [rule["alert"] for group in rules["groups"] for rule in group["rules"]]
    assert [case.alert for case in CASES] == names


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.alert)
def test_it_fires_in_the_ill_cluster_alone_and_ends(tmp_path: Path, case: Case) -> None:
    series = {**in_cluster("ill", case.changes), **in_cluster("well", {})}
    minutes = BEGINS - 1, ENDS - 1, ENDS + case.ended_minutes
    before, found, after = fired(tmp_path, case.alert, series, *minutes)
    assert found, "it does not fire"
    assert all('cluster="ill"' in labels for labels in found), found
    assert before == after == []


@pytest.mark.parametrize(
    ("down", "fires"), [((4, 5), False), ((3,), True), ((2, 3), True), ((3, 4, 5), True)]
)
def test_only_voters_put_a_majority_at_risk(
    tmp_path: Path, down: tuple[int, ...], fires: bool
) -> None:
    changes = {node("quorate_raft_is_voter", number): GONE for number in down}
    series = in_cluster("one", changes)
    assert firing(tmp_path, "QuorateMajorityAtRisk", series, ENDS - 1) is fires


def test_no_leader_also_fires_where_every_node_is_gone(tmp_path: Path) -> None:
    changes = {node("up", number, JOB): steps(1, 0) for number in range(1, 6)}
    changes[node("quorate_raft_can_write", 1)] = GONE
    series = {**in_cluster("ill", changes), **in_cluster("well", {})}
    (found,) = fired(tmp_path, "QuorateNoLeader", series, ENDS - 1)
    assert len(found) == 1
    assert 'cluster="ill"' in found[0]
    (found,) = fired(tmp_path, "QuorateNoLeader", {"other": "1x60"}, 30)
    assert len(found) == 1


def test_promtool_accepts_all_rules() -> None:
    done = promtool("check", "rules", str(ALERTS))
    assert done.returncode == 0, (done.stderr + done.stdout).decode()


@pytest.mark.parametrize(
    ("values", "minute", "fires"),
    [
        ("0+1x60", 10, False),
        ("0+1x60", 20, True),
        ("7x60", 50, False),
        ("0x10 1+1x5 6x45", 20, False),
        ("0x10 1+1x5 6x45", 30, False),
        ("100+1x30 0+1x30", 50, True),
        ("100x30 0x30", 50, False),
    ],
)
def test_dropped_frames_raise_an_alert_when_they_continue(
    tmp_path: Path, values: str, minute: int, fires: bool
) -> None:
    series = {'quorate_raft_frames_dropped_total{instance="n1:9192"}': values}
    assert firing(tmp_path, "QuorateFramesDropped", series, minute) is fires

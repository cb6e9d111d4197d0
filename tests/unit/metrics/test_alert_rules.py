"""The alerts say what they are meant to: Prometheus' own engine runs them on made-up series."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

ALERTS = Path(__file__).resolve().parents[3] / "deploy" / "prometheus" / "alerts.yaml"

pytestmark = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not installed"
)


def firing(tmp_path: Path, alert: str, series: dict[str, str], minute: int) -> bool:
    """Whether ``alert`` fires for these series, one sample a minute, at that minute."""
    expected: list[object] = []
    case = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": [
            {"eval_time": f"{minute}m", "alertname": alert, "exp_alerts": expected}
        ],
    }
    file = tmp_path / "case.yaml"
    # What is JSON is YAML. No alert is expected, so the engine complains of one that fires.
    file.write_text(json.dumps({"rule_files": [str(ALERTS)], "tests": [case]}), encoding="utf-8")
    done = subprocess.run(
        ["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return False
    assert f"alertname: {alert}" in done.stderr, done.stderr
    return True


def test_promtool_accepts_all_rules() -> None:
    done = subprocess.run(
        ["promtool", "check", "rules", str(ALERTS)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout


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
def test_dropped_frames_are_told_when_they_go_on(
    tmp_path: Path, values: str, minute: int, fires: bool
) -> None:
    series = {'quorate_raft_frames_dropped{instance="n1:9192"}': values}
    assert firing(tmp_path, "QuorateFramesDropped", series, minute) is fires

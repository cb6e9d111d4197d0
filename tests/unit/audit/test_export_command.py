"""``quorate export`` and what ``quorate audit`` says before Spark starts."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from quorate.cli.main import main
from statemachine.records import ConfigRecord
from tests.support.audit_log import AuditLog


@pytest.fixture
def log(tmp_path: Path) -> AuditLog:
    log = AuditLog(tmp_path / "node")
    log.elect(1)
    log.command(ConfigRecord(4, "", "a", "1"), ConfigRecord(4, "", "b", "1"))
    log.command(ConfigRecord(4, "", "a", "2"))
    log.commit()
    return log


def test_export_says_what_it_wrote(
    log: AuditLog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = str(tmp_path / "out")
    assert main(["export", str(log.home), "--to", target, "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["end_offset"], document["ranges_written"]) == (log.end, 1)
    assert {"table": "configs", "rows": 3} in document["rows"]
    assert main(["export", "--from", str(log.home), "--to", target, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["ranges_written"] == 0


def test_a_truncated_log_is_exit_code_3(
    log: AuditLog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = str(tmp_path / "out")
    assert main(["export", str(log.home), "--to", target]) == 0
    recovered = log.fork(tmp_path / "recovered", 3, 2)
    recovered.commit()
    capsys.readouterr()
    assert main(["export", str(recovered.home), "--to", target]) == 3
    assert "LOG_TRUNCATED" in capsys.readouterr().err


def test_damage_is_exit_code_8(
    log: AuditLog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = next(log.partition.glob("*.log"))
    data = bytearray(path.read_bytes())
    data[-3] ^= 4
    path.write_bytes(data)
    assert main(["export", str(log.home), "--to", str(tmp_path / "out")]) == 8
    assert path.name in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["export", "--to", "x"],
        ["audit", "configs"],
    ],
)
def test_nothing_to_work_on_is_wrong_usage(arguments: list[str]) -> None:
    assert main(arguments) == 2


@pytest.mark.parametrize(
    ("missing", "arguments"),
    [
        ("pyarrow", ["export", ".", "--to", "x"]),
        ("pyarrow", ["audit", "leaders", "--log", "."]),
        ("pyspark", ["audit", "leaders", "--log", "."]),
    ],
)
def test_a_missing_extra_is_named(
    missing: str,
    arguments: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    find = importlib.util.find_spec

    def without(name: str, package: str | None = None) -> Any:
        return None if name == missing else find(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    assert main(arguments) == 1
    assert "quorate[spark]" in capsys.readouterr().err

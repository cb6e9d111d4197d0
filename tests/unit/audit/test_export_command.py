"""``quorate export``, and the output of ``quorate audit`` before Spark starts."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import audit.session
from audit.errors import AuditError
from quorate.cli.main import main
from quorum.log.layout import WATERMARK_NAMES
from quorum.log_position import LogPosition
from statemachine.records import ConfigRecord
from tests.support.audit_log import AuditLog
from tests.support.damaged_logs import SAMPLE, damaged_sample


@pytest.fixture
def log(tmp_path: Path) -> AuditLog:
    log = AuditLog(tmp_path / "node")
    log.elect(1)
    log.command(ConfigRecord(4, "", "a", "1"), ConfigRecord(4, "", "b", "1"))
    log.command(ConfigRecord(4, "", "a", "2"))
    log.commit()
    return log


def test_export_reports_the_written_files(
    log: AuditLog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = str(tmp_path / "out")
    assert main(["export", str(log.home), "--to", target, "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["end_offset"], document["ranges_written"]) == (log.end, 1)
    assert {"table": "configs", "rows": 3} in document["rows"]
    position = LogPosition.from_json(document["position"])
    assert position == LogPosition(log.end, 1)
    assert position.log_digest == log.log.digest_at(log.end)
    assert main(["export", "--from", str(log.home), "--to", target, "-o", "json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert (again["ranges_written"], again["position"]) == (0, document["position"])


@pytest.mark.parametrize("place", ["node", "node/out", "node/a/b", ".", "link", "node2/out"])
def test_a_folder_of_a_node_is_refused(
    place: str, log: AuditLog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "node2"
    other.mkdir()
    (other / "meta.properties").touch()
    (tmp_path / "link").symlink_to(log.home)
    before = sorted(tmp_path.rglob("*"))
    assert main(["export", str(log.home), "--to", str(tmp_path / place)]) == 6
    assert "no folder for an export" in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_beside_an_exported_file_is_not_refused(tmp_path: Path) -> None:
    file = tmp_path / f"{0:020d}.log"
    file.write_bytes((SAMPLE / file.name).read_bytes())
    assert main(["export", str(file), "--to", str(tmp_path / "out"), "--uncommitted"]) == 0
    folder = shutil.copytree(SAMPLE, tmp_path / "kafka")
    assert main(["export", str(folder), "--to", str(folder / "out")]) == 6


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


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    return damaged_sample(tmp_path)


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_a_damaged_foreign_log_is_exported_before_the_damage_only_on_demand(
    damaged: Path, tmp_path: Path, quiet: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "out"
    arguments = ["export", str(damaged), "--to", str(target), "-o", "json", *quiet]
    assert main(arguments) == 8
    captured = capsys.readouterr()
    assert captured.out == ""
    for part in (f"{0:020d}.log", "damaged batch", "position 1", "valid batch", "section Damage"):
        assert part in captured.err
    assert not list(target.rglob("*.parquet"))
    assert main([*arguments, "--only-before-damage"]) == 8
    captured = capsys.readouterr()
    end = json.loads(captured.out)["end_offset"]
    assert 0 < end < 43
    assert f"exported below offset {end} only" in captured.err
    # What was exported is the beginning of the log all the same: an intact replica continues it.
    assert main(["export", str(SAMPLE), "--to", str(target), "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["end_offset"] == 43


@pytest.mark.parametrize("question", ["configs", "leaders", "partitions"])
def test_no_question_is_answered_from_a_damaged_log(
    damaged: Path, question: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", question, "--log", str(damaged), "--quiet"]) == 8
    captured = capsys.readouterr()
    assert captured.out == ""
    for part in (f"{0:020d}.log", "damaged batch", "position 1", "section Damage"):
        assert part in captured.err


def test_missing_records_are_reported_with_quiet_too(
    log: AuditLog,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in WATERMARK_NAMES:
        (log.partition / name).unlink()
    warning = "no high watermark is stored"
    assert main(["export", str(log.home), "--to", str(tmp_path / "out"), "--quiet"]) == 0
    assert warning in capsys.readouterr().err

    def no_spark() -> None:
        raise AuditError("no Spark here")

    asked = ["audit", "configs", "--log", str(log.home)]
    assert main([*asked, "--quiet"]) == 0
    assert warning in capsys.readouterr().err
    monkeypatch.setattr(audit.session, "local_session", no_spark)
    assert main([*asked, "--quiet", "--engine", "spark"]) == 1
    assert warning in capsys.readouterr().err


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
    ("missing", "arguments", "extra"),
    [
        ("pyarrow", ["export", ".", "--to", "x"], "parquet"),
        ("pyarrow", ["audit", "leaders", "--log", "."], "parquet"),
        ("duckdb", ["audit", "leaders", "--log", "."], "parquet"),
        ("duckdb", ["audit", "query", "--log", ".", "--sql", "SELECT 1"], "parquet"),
        ("matplotlib", ["audit", "report", "--log", ".", "--to", "x"], "plots"),
        ("pyspark", ["audit", "leaders", "--log", ".", "--engine", "spark"], "spark"),
    ],
)
def test_a_missing_extra_is_named(
    missing: str,
    arguments: list[str],
    extra: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    find = importlib.util.find_spec

    def without(name: str, package: str | None = None) -> Any:
        return None if name == missing else find(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    assert main(arguments) == 1
    assert f"quorate[{extra}]" in capsys.readouterr().err

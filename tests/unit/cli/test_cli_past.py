"""``quorate state`` and ``quorate diff``: documents, exit codes and what people see."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from quorate.cli.main import main
from statemachine.records import ConfigRecord, RemoveTopicRecord, TopicRecord
from tests.support.audit_log import AuditLog
from tests.support.kafka_directory import SAMPLE_CLUSTER_ID, SAMPLE_END_OFFSET, whole_sample


@pytest.fixture
def log(tmp_path: Path) -> AuditLog:
    """Two topics and a value; one topic is deleted again."""
    log = AuditLog(tmp_path / "node")
    log.elect(1)
    log.command(TopicRecord("orders", b"o" * 16), principal="User:ann", reason="shop")
    log.command(TopicRecord("old", b"x" * 16), principal="User:ann")
    log.command(ConfigRecord(2, "orders", "retention.ms", "1"), principal="User:bob")
    log.command(ConfigRecord(2, "orders", "retention.ms", "2"), principal="User:eve", reason="disk")
    log.command(RemoveTopicRecord(b"x" * 16), principal="User:cleaner")
    log.commit()
    return log


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any], str]:
    status = main([*arguments, "-o", "json"])
    captured = capsys.readouterr()
    return status, json.loads(captured.out) if captured.out else {}, captured.err


def test_the_state_as_of_an_offset(log: AuditLog, capsys: pytest.CaptureFixture[str]) -> None:
    status, found, _ = run(capsys, "state", str(log.home), "--at-offset", "3")
    assert status == 0
    assert (found["kind"], found["as_of_offset"], found["epoch"]) == ("State", 3, 1)
    assert [(row["kind"], row["name"]) for row in found["rows"]] == [
        ("topic", "old"),
        ("topic", "orders"),
    ]
    status, found, _ = run(capsys, "state", str(log.home), "--kind", "config")
    (row,) = found["rows"]
    assert (row["name"], row["fields"]["value"]) == ("topic:orders/retention.ms", "2")
    status, found, _ = run(capsys, "state", str(log.home), "--count")
    assert found["rows"] == [{"kind": "topic", "entities": 1}, {"kind": "config", "entities": 1}]


def test_a_state_that_cannot_be_shown_ends_with_4(
    log: AuditLog, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "state", str(log.home), "--at-offset", "99")[0] == 4
    log.log.advance_start(log.checkpoint())
    status, _, error = run(capsys, "state", str(log.home), "--at-offset", "2")
    assert status == 4
    assert "the oldest state that can be shown is as of offset 6" in error
    assert run(capsys, "state", str(log.home), "--at-offset", "1", "--at-time", "5")[0] == 2
    assert run(capsys, "state", str(log.home), "--at-time", "soon")[0] == 2


def test_a_position_behind_the_directory(log: AuditLog, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "state", f"{log.home}@3")[1]["as_of_offset"] == 3
    assert run(capsys, "shell", f"{log.home}@3", "pwd")[0] == 0
    status, _, error = run(capsys, "state", f"{log.home}@3", "--at-offset", "2")
    assert (status, "names a position already" in error) == (2, True)
    status, _, error = run(capsys, "state", "nowhere")
    assert (status, "no such file or directory (name a data directory" in error) == (2, True)


def test_an_empty_state_says_why(log: AuditLog, capsys: pytest.CaptureFixture[str]) -> None:
    status, found, error = run(capsys, "state", str(log.home), "--at-time", "2001-01-01")
    assert (status, found["as_of_offset"], found["rows"]) == (0, 0, [])
    assert "before the first record of the log, of 2023-11-14T22:13:20.000+00:00" in error
    assert "note:" not in run(capsys, "state", str(log.home), "--at-offset", "1")[2]


def test_other_files_are_no_damage(log: AuditLog, capsys: pytest.CaptureFixture[str]) -> None:
    """Only a file that is a segment or a checkpoint by its name is damaged."""
    status, _, error = run(capsys, "state", str(log.home / "meta.properties"))
    assert (status, "neither a log segment nor a checkpoint" in error) == (4, True)
    segment = log.home.parent / "00000000000000000000.log"
    segment.write_bytes((log.home / "meta.properties").read_bytes())
    status, _, error = run(capsys, "state", str(segment))
    assert (status, "section Damage" in error) == (8, True)


def test_a_lone_segment_names_the_option(log: AuditLog, capsys: pytest.CaptureFixture[str]) -> None:
    (segment,) = log.partition.glob("*.log")
    _, found, error = run(capsys, "state", str(segment))
    assert (found["as_of_offset"], "the option uncommitted" in error) == (0, True)
    assert run(capsys, "state", str(segment), "--uncommitted")[1]["as_of_offset"] == log.end


def test_a_damaged_log_ends_with_8(log: AuditLog, capsys: pytest.CaptureFixture[str]) -> None:
    (segment,) = log.partition.glob("*.log")
    data = bytearray(segment.read_bytes())
    data[-20] ^= 1
    segment.write_bytes(bytes(data))
    status, _, error = run(capsys, "state", str(log.home))
    assert status == 8
    assert "section Damage" in error


def test_a_difference_with_who_and_why(log: AuditLog, capsys: pytest.CaptureFixture[str]) -> None:
    status, found, _ = run(capsys, "diff", f"{log.home}@3", str(log.home))
    assert status == 3
    assert (found["added"], found["removed"], found["changed"]) == (1, 1, 0)
    assert found["same_history"] is True
    removed, added = found["rows"]
    assert (removed["change"], removed["name"], removed["principal"]) == (
        "removed",
        "old",
        "User:cleaner",
    )
    assert (added["name"], added["principal"], added["reason"]) == (
        "topic:orders/retention.ms",
        "User:eve",
        "disk",
    )
    assert [change["principal"] for change in added["changes"]] == ["User:bob", "User:eve"]
    status, found, _ = run(capsys, "diff", "--in", str(log.home), "4", "5")
    (row,) = found["rows"]
    assert row["fields"] == {"value": {"before": "1", "after": "2"}}


def test_a_folder_without_a_log_is_not_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whichever command reads it."""
    folder = str(tmp_path)
    for words in (
        ("state", folder),
        ("diff", folder, folder),
        ("log", "dump", folder),
        ("log", "verify", folder),
        ("snapshot", "list", folder),
        ("snapshot", "create", folder),
        ("export", folder, "--to", f"{folder}-out"),
        ("audit", "leaders", "--log", folder),
        ("audit", "leaders", "--export", folder),
    ):
        status, _, error = run(capsys, *words)
        assert (words, status) == (words, 4)
        assert error.count("\n") == 1


def test_equal_states_end_with_0(log: AuditLog, capsys: pytest.CaptureFixture[str]) -> None:
    copy = log.copy(log.home.parent / "copy")
    status, found, _ = run(capsys, "diff", str(copy), str(log.home))
    assert (status, found["rows"], found["same_history"]) == (0, [], True)
    assert run(capsys, "diff", str(log.home), "nowhere")[0] == 2


def test_why_authors_are_not_known(
    log: AuditLog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = AuditLog(tmp_path / "other", cluster_id="another")
    other.elect(1)
    other.commit()
    status, found, error = run(capsys, "diff", str(log.home), str(other.home))
    assert (status, found["same_history"]) == (3, False)
    assert "of different clusters, audit-test and another: who and why are not known" in error
    fork = log.fork(tmp_path / "fork", 3, 2)
    fork.commit()
    fork.command(TopicRecord("new", b"n" * 16))
    fork.commit()
    assert "have different histories" in run(capsys, "diff", str(log.home), str(fork.home))[2]


def test_what_people_see(log: AuditLog, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "--in", str(log.home), "4", "5"]) == 3
    shown = capsys.readouterr().out
    assert "value: 1 -> 2" in shown
    assert "User:eve" in shown
    assert main(["state", str(log.home)]) == 0
    assert "name=orders" in capsys.readouterr().out


def test_kafkas_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(whole_sample(tmp_path))
    status, found, _ = run(capsys, "state", folder, "--kind", "topic", "--at-time", "2026-02-01")
    assert (status, found["as_of_offset"]) == (0, SAMPLE_END_OFFSET)
    assert found["cluster_id"] == SAMPLE_CLUSTER_ID
    assert len(found["rows"]) == 5
    status, found, _ = run(capsys, "diff", "--in", folder, "100", "2000")
    assert (status, found["added"]) == (3, 59)


def test_neither_needs_pyarrow_or_grpc() -> None:
    """Goal: time travel works in a plain installation, and starts fast."""
    code = (
        "import sys, quorate.cli.state, quorate.cli.diff\n"
        "print([name for name in ('pyarrow', 'pyspark', 'grpc') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"

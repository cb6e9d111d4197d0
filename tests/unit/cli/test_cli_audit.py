"""Audit queries report the offset of their answers. Spark itself is replaced by a fake."""

from __future__ import annotations

import importlib
import json
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from quorate.cli.main import main
from statemachine.records import FeatureLevelRecord, NoOpRecord
from tests.support.kafka_directory import KafkaDirectory

session = importlib.import_module("audit.session")
views = importlib.import_module("audit.views")


class NoRows:
    """A frame without rows."""

    def collect(self) -> list[Any]:
        return []


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each question took in what is not known to be committed."""
    found: list[bool] = []

    @contextmanager
    def no_session(**_: object) -> Any:
        yield None

    def tables(_spark: object, _source: Path, *, with_unknown: bool) -> None:
        found.append(with_unknown)

    monkeypatch.setattr(session, "require_pyspark", lambda: None)
    monkeypatch.setattr(session, "local_session", no_session)
    monkeypatch.setattr(views, "tables_of_log", tables)
    monkeypatch.setattr(views, "state_as_of", lambda *_: NoRows())
    return found


def one_of_three(folder: Path) -> Path:
    """A Kafka controller's directory: a checkpoint at 3, the log's end at 5."""
    kafka = KafkaDirectory(folder, voters=3)
    for _ in range(4):
        kafka.batch(NoOpRecord())
    kafka.checkpoint(3, FeatureLevelRecord("metadata.version", 20))
    return kafka.path


def asks(
    capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, dict[str, Any] | None, str]:
    status = main(["-o", "json", "audit", "partitions", *arguments])
    captured = capsys.readouterr()
    return status, json.loads(captured.out) if captured.out else None, captured.err


def test_one_voter_of_several_is_answered_up_to_its_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], asked: list[bool]
) -> None:
    log = str(one_of_three(tmp_path / "n"))
    status, answer, errors = asks(capsys, "--log", log)
    assert status == 0
    assert answer is not None
    assert answer["as_of_offset"] == 3
    assert "answered as of offset 3" in errors
    assert "up to 5" in errors
    assert "--uncommitted" in errors
    status, answer, errors = asks(capsys, "--log", log, "--uncommitted")
    assert (status, answer and answer["as_of_offset"]) == (0, 5)
    assert "answered as of" not in errors
    assert asked == [False, True]
    _, answer, _ = asks(capsys, "--log", log, "--uncommitted", "--as-of", "4")
    assert answer is not None
    assert answer["as_of_offset"] == 4


def test_an_export_has_taken_in_what_it_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, errors = asks(capsys, "--export", str(tmp_path), "--uncommitted")
    assert status == 2
    assert "`quorate export`" in errors

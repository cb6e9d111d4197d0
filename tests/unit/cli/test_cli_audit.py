"""`quorate audit` answers from logs and exports, names the offset of its answer, and refuses."""

from __future__ import annotations

import errno
import importlib.util
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from audit.export import export_log
from audit.export_files import ExportFolder
from quorate.cli.main import main
from statemachine.records import ConfigRecord, FeatureLevelRecord, NoOpRecord
from tests.support.audit_answers import trimmed_log
from tests.support.kafka_directory import KafkaDirectory


def one_of_three(folder: Path) -> Path:
    """A Kafka controller's directory: a checkpoint at 3, the log's end at 6."""
    kafka = KafkaDirectory(folder, voters=3)
    for _ in range(4):
        kafka.batch(NoOpRecord())
    kafka.checkpoint(3, FeatureLevelRecord("metadata.version", 20))
    kafka.batch(ConfigRecord(2, "t", "retention.ms", "5"))
    return kafka.path


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("audit")
    log = trimmed_log(folder / "node")
    export_log(log.home, folder / "out")
    return str(folder / "out")


def asks(
    capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, dict[str, Any] | None, str]:
    status = main(["-o", "json", "audit", *arguments])
    captured = capsys.readouterr()
    return status, json.loads(captured.out) if captured.out else None, captured.err


def test_one_voter_of_several_is_answered_up_to_its_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = str(one_of_three(tmp_path / "n"))
    status, answer, errors = asks(capsys, "configs", "--log", log)
    assert status == 0
    assert answer is not None
    assert (answer["as_of_offset"], answer["rows"]) == (3, [])
    assert "answered as of offset 3" in errors
    assert "up to 6" in errors
    assert "--uncommitted" in errors
    status, answer, errors = asks(capsys, "configs", "--log", log, "--uncommitted")
    assert answer is not None
    assert (status, answer["as_of_offset"]) == (0, 6)
    assert [row["value"] for row in answer["rows"]] == ["5"]
    assert "answered as of" not in errors
    _, answer, _ = asks(capsys, "configs", "--log", log, "--uncommitted", "--as-of", "4")
    assert answer is not None
    assert (answer["as_of_offset"], answer["rows"]) == (4, [])


def test_an_export_has_taken_in_what_it_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, errors = asks(capsys, "partitions", "--export", str(tmp_path), "--uncommitted")
    assert status == 2
    assert "`quorate export`" in errors


def test_one_source_is_named(
    export: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, errors = asks(capsys, "leaders")
    assert status == 2
    assert "either --export or --log" in errors
    status, _, errors = asks(capsys, "leaders", "--export", export, "--log", str(tmp_path))
    assert status == 2
    assert "not both" in errors
    status, _, errors = asks(capsys, "leaders", "--export", str(tmp_path))
    assert status == 4
    assert "contains no export" in errors


def test_a_source_that_has_no_answer_says_what_to_do(
    export: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An empty folder, a log in place of an export, the reverse, and exports that have no part."""
    home, target = trimmed_log(tmp_path / "node").home, tmp_path / "out"
    status, _, errors = asks(capsys, "leaders", "--export", str(tmp_path))
    assert (status, f"quorate export DATA_DIRECTORY --to {tmp_path}" in errors) == (4, True)
    status, _, errors = asks(capsys, "leaders", "--export", str(home))
    assert (status, "it is a data directory (name it with --log)" in errors) == (4, True)
    status, _, errors = asks(capsys, "leaders", "--log", export)
    assert (status, "it is an export (name it with --export)" in errors) == (4, True)
    with ExportFolder(target).locked():
        (target / "history" / "_unfinished.parquet").touch()
        status, _, errors = asks(capsys, "leaders", "--export", str(target))
        assert (status, "contains no export yet; one is running" in errors) == (4, True)
    status, _, errors = asks(capsys, "leaders", "--export", str(target))
    assert (status, "one was stopped" in errors) == (4, True)
    assert "run the same `quorate export` again" in errors
    # The part that is complete is answered while the next one is written.
    export_log(home, target)
    with ExportFolder(target).locked():
        (target / "history" / "_unfinished.parquet").touch()
        status, answer, errors = asks(capsys, "leaders", "--export", str(target))
        assert (status, bool(answer), errors) == (0, True, "")


def test_a_question_about_what_is_not_there_says_so(
    export: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, answer, errors = asks(capsys, "configs", "--export", export, "--topic", "Nobody")
    assert answer is not None
    assert (status, answer["rows"]) == (4, [])
    assert "nothing was found for the topic 'Nobody'" in errors
    status, answer, errors = asks(capsys, "configs", "--export", export, "--as-of", "99999")
    assert answer is not None
    end = answer["as_of_offset"]
    assert (status, end < 99999) == (0, True)
    assert f"answered as of {end}" in errors


def test_a_report_that_cannot_be_written_is_refused_before_reading(
    export: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object) -> None:
        raise AssertionError("read the source first")

    monkeypatch.setattr("quorate.cli.audit_report.look_at", read)
    target = tmp_path / "missing" / "report.html"
    status, _, errors = asks(capsys, "report", "--export", export, "--to", str(target))
    assert (status, f"there is no folder {target.parent}" in errors) == (2, True)


def test_questions_are_answered_without_java(
    export: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = set(sys.modules)
    _, answer, errors = asks(capsys, "leaders", "--export", export, "--topic", "led-by-one")
    assert answer is not None
    assert errors == ""
    turns = [(row["leader"], row["cause"], row["principal"]) for row in answer["rows"]]
    assert turns[1] == (0, "BrokerFencedEvent", "User:controller")
    assert answer["rows"][0]["from_time"].startswith("2023-11-14T22:13:20.")
    assert answer["rows"][0]["from_time"].endswith("Z")
    _, answer, _ = asks(capsys, "partitions", "--export", export, "--topic", "led-by-one")
    assert answer is not None
    assert [(row["replicas"], row["isr"]) for row in answer["rows"]] == [([1, 0], [0])]
    assert not [name for name in set(sys.modules) - before if name.startswith("pyspark.sql")]


@pytest.mark.parametrize("encoding", ["strict", "surrogateescape"])
def test_what_is_not_utf8_is_wrong_usage(
    encoding: str, export: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = io.TextIOWrapper(io.BytesIO(b"select \xff"), encoding="utf-8", errors=encoding)
    monkeypatch.setattr(sys, "stdin", given)
    for arguments in (
        ("query", "--sql", "-"),
        ("query", "--sql", "select \udcff"),
        ("leaders", "--topic", "\udcff"),
    ):
        status, answer, errors = asks(capsys, *arguments, "--export", export)
        assert (status, answer, errors.count("\n")) == (2, None, 1)
        assert "is not UTF-8 text, at position" in errors


def test_a_query_of_ones_own(
    export: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "SELECT principal, count(*) AS changes FROM partitions GROUP BY ALL ORDER BY ALL"
    _, first, _ = asks(capsys, "query", "--export", export, "--sql", text)
    assert first is not None
    assert first["kind"] == "AuditQuery"
    assert {"principal": "User:controller", "changes": 3} in first["rows"]
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    _, second, _ = asks(capsys, "query", "--export", export, "--sql", "-")
    assert second == first
    values = (
        "SELECT [1.5::DOUBLE] AS list, {'at': TIMESTAMP '2026-01-02 03:04:05'} AS struct, "
        "1.50::DECIMAL(4, 2) AS exact, 'NaN'::DOUBLE AS nan, NULL AS nothing, "
        "DATE '2026-01-02' AS day"
    )
    _, answer, _ = asks(capsys, "query", "--export", export, "--sql", values)
    assert answer is not None
    assert answer["rows"] == [
        {
            "list": [1.5], "struct": {"at": "2026-01-02T03:04:05.000Z"}, "exact": "1.50",
            "nan": "nan", "nothing": None, "day": "2026-01-02",
        }
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("SELECT * FROM hist", "there are history, topics"),
        ("SELECT * FROM histori", "there is no table or view histori (did you mean history?"),
        ("SELECT * FROM read_csv('/etc/passwd')", "reads the tables of the audit trail"),
        ("DELETE FROM history", "nothing else is run"),
        ("SELECT a.topic, b.topic FROM topics a, topics b", "give them names with AS"),
    ],
)
def test_a_query_that_is_none(
    text: str, problem: str, export: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, answer, errors = asks(capsys, "query", "--export", export, "--sql", text)
    assert (status, answer) == (2, None)
    assert problem in errors


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "quorate" / "audit"


def test_rows_of_a_log_are_kept_unless_it_is_refused(
    cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = str(trimmed_log(tmp_path / "node").home)
    _, refused, _ = asks(capsys, "leaders", "--log", home, "--no-cache")
    assert not cache.exists()
    _, first, _ = asks(capsys, "leaders", "--log", home)
    assert len(list(cache.iterdir())) == 1
    _, second, errors = asks(capsys, "leaders", "--log", home)
    assert first == second == refused
    assert errors == ""


def one_line(errors: str) -> str:
    assert errors.count("\n") <= 2, errors
    assert "Traceback" not in errors
    return errors


@pytest.mark.parametrize("question", [["leaders"], ["query", "--sql", "FROM partitions"]])
def test_a_file_of_an_export_with_damaged_pages(
    question: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its end can be read, so only the query finds out."""
    export_log(trimmed_log(tmp_path / "node").home, tmp_path / "out")
    file = next((tmp_path / "out" / "partitions").glob("*.parquet"))
    data = bytearray(file.read_bytes())
    pages = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    data[4:pages] = bytes(255 - each for each in data[4:pages])
    file.write_bytes(data)
    status, answer, errors = asks(capsys, *question, "--export", str(tmp_path / "out"))
    assert (status, answer) == (8, None)
    assert f"{file}: this file of the export is damaged" in one_line(errors)


def test_an_export_that_may_not_be_read(
    export: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    status, _, errors = asks(capsys, "leaders", "--export", export)
    assert status == 2
    assert "cannot read the export: Permission denied" in one_line(errors)


def test_a_report_needs_a_file_that_may_be_written_not_read(
    export: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "report.html"
    target.touch()
    allowed = os.W_OK

    def access(path: object, mode: int) -> bool:
        return mode in (os.F_OK, allowed) if str(path) == str(target) else True

    monkeypatch.setattr(os, "access", access)
    assert asks(capsys, "report", "--export", export, "--to", str(target))[0] == 0
    assert target.stat().st_size > 0
    allowed = os.R_OK
    status, _, errors = asks(capsys, "report", "--export", export, "--to", str(target))
    assert (status, "the file there may not be written" in errors) == (2, True)


def test_a_truncated_file_of_an_export(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export_log(trimmed_log(tmp_path / "node").home, tmp_path / "out")
    file = next((tmp_path / "out" / "partitions").glob("*.parquet"))
    file.write_bytes(file.read_bytes()[:-20])
    for arguments in (["leaders"], ["query", "--sql", "SELECT count(*) FROM partitions"]):
        status, answer, errors = asks(capsys, *arguments, "--export", str(tmp_path / "out"))
        assert (status, answer) == (8, None)
        assert f"{file}: this file of the export is damaged" in one_line(errors)
    # Its footer is whole and a page of it is not.
    file = next((tmp_path / "out" / "history").glob("*.parquet"))
    data = bytearray(file.read_bytes())
    data[4 : len(data) // 2] = bytes(len(data) // 2 - 4)
    file.write_bytes(data)
    sql = "SELECT payload FROM history"
    status, answer, errors = asks(capsys, "query", "--sql", sql, "--export", str(tmp_path / "out"))
    assert (status != 0, answer) == (True, None)
    one_line(errors)


@pytest.mark.parametrize(
    ("missing", "arguments", "problem"),
    [
        ("duckdb", [], "DuckDB is not installed; run: pip install 'quorate[parquet]'"),
        ("pyarrow", [], "pip install 'quorate[parquet]'"),
        ("pyspark", ["--engine", "spark"], "Spark is not installed; run: pip install"),
        ("pyarrow pyspark", ["--engine", "spark"], "pip install 'quorate[spark]'"),
    ],
)
def test_a_library_that_is_not_installed(
    missing: str,
    arguments: list[str],
    problem: str,
    export: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in missing.split() else find(name)
    )
    status, answer, errors = asks(capsys, "leaders", "--export", export, *arguments)
    assert (status, answer) == (1, None)
    assert problem in one_line(errors)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["leaders", "--export", "/no/such/folder"], "/no/such/folder"),
        (["leaders", "--log", "/no/such/log"], "/no/such/log"),
        (["leaders", "--export"], "'--export' requires an argument"),
        (["leader", "--export", "/"], "leaders"),
        (["--export", "/", "leaders"], "--export"),
        (
            ["leaders", "--export", "/", "--as-of", "x"],
            "expected a whole number of at least 0, not 'x'",
        ),
        (["leaders", "orders", "--export", "/"], "orders"),
    ],
)
def test_arguments_that_are_wrong_or_in_the_wrong_place(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, answer, errors = asks(capsys, *arguments)
    assert (status, answer) == (2, None)
    assert problem in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize("question", ["partitions", "leaders", "configs", "quorum"])
def test_the_table_of_a_question_fits_a_terminal_and_wide_has_every_column(
    export: str, capsys: pytest.CaptureFixture[str], question: str
) -> None:
    assert main(["audit", question, "--export", export]) == 0
    narrow = capsys.readouterr().out.splitlines()[2:]
    assert max(map(len, narrow)) <= 100
    assert main(["audit", question, "--export", export, "--wide"]) == 0
    wide = capsys.readouterr().out.splitlines()[2:]
    assert len(wide) == len(narrow)
    assert set(narrow[0].split()) < set(wide[0].split())

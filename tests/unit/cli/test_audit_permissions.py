"""Audit commands without the permission to read or write; the operating system refuses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from audit.export import export_log
from quorate.cli.exits import Exit
from tests.support.audit_answers import trimmed_log
from tests.support.file_rights import run_without_rights

OWNER = "run it as the account that owns the files"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return trimmed_log(tmp_path / "node").home


@pytest.fixture
def export(home: Path, tmp_path: Path) -> Path:
    export_log(home, tmp_path / "out")
    return tmp_path / "out"


@contextmanager
def mode(path: Path, bits: int) -> Iterator[None]:
    before = path.stat().st_mode
    path.chmod(bits)
    try:
        yield
    finally:
        path.chmod(before)


def refusal(*arguments: str) -> str:
    """The one line that a refused command writes."""
    done = run_without_rights(*arguments)
    assert (done.returncode, done.stdout) == (Exit.USAGE, "")
    (line,) = done.stderr.splitlines()
    return line


@pytest.mark.parametrize(
    "question", [["leaders"], ["query", "--sql", "SELECT count(*) FROM partitions"]]
)
def test_a_file_of_an_export(export: Path, question: list[str]) -> None:
    file = next((export / "partitions").glob("*.parquet"))
    with mode(file, 0):
        line = refusal("audit", *question, "--export", str(export))
    assert line == f"error: {file}: cannot read the export: Permission denied ({OWNER})"


def test_a_segment_of_a_log(home: Path) -> None:
    segment = max(home.glob("*/*.log"))
    with mode(segment, 0):
        line = refusal("audit", "configs", "--log", str(home), "--no-cache")
    assert line == f"error: {segment}: cannot open: Permission denied ({OWNER})"


def test_a_folder_where_an_export_is_to_be_made(home: Path, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    with mode(closed, 0o500):
        line = refusal("export", str(home), "--to", str(closed / "out"))
    assert line == f"error: {closed}/out: cannot write the export: Permission denied ({OWNER})"


def test_a_table_of_a_new_export(home: Path, tmp_path: Path) -> None:
    table = tmp_path / "new" / "topics"
    table.mkdir(parents=True)
    with mode(table, 0o500):
        line = refusal("export", str(home), "--to", str(table.parent))
    file = table / "_unfinished.parquet"
    assert line == f"error: {file}: cannot write the export: Permission denied ({OWNER})"


def test_a_lost_file_of_an_export_that_would_be_written_again(home: Path, export: Path) -> None:
    table = export / "configs"
    for each in table.iterdir():
        each.unlink()
    with mode(table, 0o500):
        line = refusal("export", str(home), "--to", str(export))
    assert line == f"error: {export}: cannot write the export: Permission denied ({OWNER})"


def test_a_folder_for_a_report(export: Path, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    with mode(closed, 0o500):
        line = refusal("audit", "report", "--export", str(export), "--to", f"{closed}/r.html")
    assert line == (
        f"error: {closed}/r.html: cannot write the report: nothing may be written into {closed}"
    )

"""An export that lost files is no answer: the file is named, and the next run writes it again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from audit.database import database_of_export
from audit.errors import ExportDamagedError
from audit.export import export_log
from audit.export_contents import START_KEY, TABLES_KEY
from audit.export_files import ExportFolder
from audit.schema import HISTORY, PARTITIONS, TYPED_TABLES
from quorate.cli.main import main
from statemachine.records import ConfigRecord
from tests.support.audit_answers import trimmed_log
from tests.support.audit_log import AuditLog


def content(target: Path) -> dict[str, list[dict[str, object]]]:
    """Return the rows of every file; their order in a file belongs to it."""
    return {
        str(path.relative_to(target)): pq.read_table(path).to_pylist()
        for path in sorted(target.rglob("*.parquet"))
    }


@pytest.fixture
def log(tmp_path: Path) -> AuditLog:
    log = AuditLog(tmp_path / "node", segment_bytes=3000)
    log.elect(1)
    log.world(11, 80)
    log.commit()
    return log


@pytest.fixture
def target(log: AuditLog, tmp_path: Path) -> Path:
    export_log(log.home, tmp_path / "out", rows_per_file=30)
    assert len(ExportFolder(tmp_path / "out").ranges()) > 3
    return tmp_path / "out"


@pytest.mark.parametrize("question", ["partitions", "leaders", "configs", "quorum", "report"])
def test_nothing_is_answered_while_a_table_is_missing(
    question: str, target: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ExportFolder(target).files(PARTITIONS)
    for path in files:
        path.unlink()
    more = ["--to", str(tmp_path / "page.html")] if question == "report" else []
    assert main(["audit", question, "--export", str(target), *more]) == 8
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"{files[0]}: this file of the export is missing" in captured.err
    assert "`quorate export` into this folder writes it again" in captured.err


def test_lost_files_of_tables_are_written_again_and_nothing_else(
    log: AuditLog, target: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = content(target)
    lost = [path for table in TYPED_TABLES for path in ExportFolder(target).files(table)[:2]]
    kept = {path: path.stat().st_mtime_ns for path in set(target.rglob("*.parquet")) - {*lost}}
    for path in lost:
        path.unlink()
    assert main(["export", str(log.home), "--to", str(target)]) == 0
    assert f"{lost[0].relative_to(target)} was missing" in capsys.readouterr().err
    assert content(target) == before
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert export_log(log.home, target).repaired == []


@pytest.mark.parametrize("place", [0, 1, -1])
def test_a_lost_range_is_noticed_and_exported_again(
    place: int, log: AuditLog, target: Path
) -> None:
    """The last one is not noticed: the export ends before it, and answers name that offset."""
    before = content(target)
    exported = ExportFolder(target).ranges()[place]
    (target / HISTORY / exported.file_name).unlink()
    if place != -1:
        name = f"file of offsets {exported.start} to {exported.end} is missing"
        with pytest.raises(ExportDamagedError, match=name), database_of_export(target):
            pass
    report = export_log(log.home, target, rows_per_file=30)
    assert (report.start_offset, report.end_offset) == (0, log.end)
    assert report.position is not None
    assert report.position.offset == log.end
    assert report.written == [exported]
    assert content(target) == before
    assert export_log(log.home, target).written == []


@pytest.mark.parametrize("table", [HISTORY, PARTITIONS])
def test_what_the_log_no_longer_has_is_not_made_up(table: str, tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "node", segment_bytes=1500)
    log.elect(1)
    world = log.world(7, 40)
    log.commit()
    target = tmp_path / "out"
    export_log(log.home, target, rows_per_file=20)
    log.more(world, 40)
    snapshot_id = log.checkpoint()
    log.more(world, 20)
    log.commit()
    log.log.advance_start(snapshot_id)
    ExportFolder(target).files(table)[1].unlink()
    left = content(target)
    with pytest.raises(ExportDamagedError, match="restore it, or export into another folder"):
        export_log(log.home, target)
    assert content(target) == left


def test_lost_rows_of_a_baseline_come_from_the_same_checkpoint_only(tmp_path: Path) -> None:
    log = trimmed_log(tmp_path / "node")
    target = tmp_path / "out"
    export_log(log.home, target)
    before = content(target)
    first = ExportFolder(target).files(PARTITIONS)[0]
    first.unlink()
    assert export_log(log.home, target).repaired == [f"partitions/{first.name}"]
    assert content(target) == before
    first.unlink()
    other = trimmed_log(tmp_path / "other")
    other.log.advance_start(other.checkpoint())
    other.commit()
    with pytest.raises(ExportDamagedError, match=first.name):
        export_log(other.home, target)


def test_an_export_of_an_earlier_release_is_read_and_continued(
    log: AuditLog, target: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its history files have no list of tables."""
    for path in ExportFolder(target).files(HISTORY):
        table = pq.read_table(path)
        metadata = dict(table.schema.metadata)
        stored = {**(pq.read_metadata(path).metadata or {}), **metadata}
        kept = {key: stored[key] for key in stored if key not in (TABLES_KEY, START_KEY)}
        pq.write_table(table.replace_schema_metadata(kept), path)
        assert TABLES_KEY not in (pq.read_metadata(path).metadata or {})
    assert main(["audit", "leaders", "--export", str(target), "-o", "json"]) == 0
    assert capsys.readouterr().err == ""
    older = shutil.copytree(target, target.with_name("older"))
    log.command(ConfigRecord(4, "", "a", "1"))
    log.commit()
    assert len(export_log(log.home, older).written) == 1
    ExportFolder(older).files(HISTORY)[0].unlink()
    with pytest.raises(ExportDamagedError, match="file of offsets 0 to"), database_of_export(older):
        pass

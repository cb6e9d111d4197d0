"""``quorate backup``: what its commands show, and how they end."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import fsspec
import pytest

from quorate.backup.manifest import newest_manifest
from quorate.backup.storage import DirectoryStorage
from quorate.cli.main import main
from quorum.errors import IdentityError
from quorum.log.filesystem import OsFileSystem
from quorum.log.identity import load_identity
from quorum.types import OffsetAndEpoch
from statemachine.dump import state_digest
from statemachine.records import TopicRecord
from tests.support.audit_log import CLUSTER_ID, TIME_0, AuditLog
from tests.support.backed_up_log import World, trimmed
from tests.support.kafka_directory import KafkaDirectory


def ran(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, dict[str, Any], str]:
    status = main(["backup", *map(str, words), "-o", "json"])
    captured = capsys.readouterr()
    return status, json.loads(captured.out) if captured.out else {}, captured.err


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = AuditLog(tmp_path / "node")
    log.elect(1)
    log.world(5, 20)
    end = log.commit()
    target, scratch = tmp_path / "target", tmp_path / "scratch"
    scratch.mkdir()
    assert ran(capsys, "verify", target)[0] == 4
    status, found, _ = ran(capsys, "create", target, "--from", log.home)
    assert (status, found["kind"], found["end_offset"]) == (0, "Backup", end)
    modes = {stat.S_IMODE(each.stat().st_mode) for each in target.rglob("*") if each.is_file()}
    assert modes == {0o600}
    assert {stat.S_IMODE(each.stat().st_mode) for each in (target, target / "log")} == {0o700}
    status, found, _ = ran(capsys, "show", target)
    assert [row["end_offset"] for row in found["rows"]] == [end]
    status, found, _ = ran(capsys, "verify", target)
    assert (status, found["is_intact"], found["bytes_read"]) == (0, True, found["bytes"])
    status, found, _ = ran(capsys, "drill", target, "--scratch", scratch)
    assert (status, found["is_equal"], found["restored_to"]) == (0, True, end)
    assert not list(scratch.iterdir()), "deleted"
    chunk = next((target / "log").iterdir())
    chunk.write_bytes(chunk.read_bytes()[:-1])
    for command in ("verify", "drill"):
        status, _, error = ran(capsys, command, target)
        assert (status, chunk.name in error) == (8, True)
    other = AuditLog(tmp_path / "other", cluster_id="another")
    other.elect(1)
    other.commit()
    assert ran(capsys, "create", target, "--from", other.home)[0] == 6


def test_a_target_with_other_files_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: nobody writes a backup into a data directory, because --from was forgotten."""
    log = AuditLog(tmp_path / "node")
    log.elect(1)
    log.commit()
    other = AuditLog(tmp_path / "other")
    before = sorted(other.home.rglob("*"))
    status, _, error = ran(capsys, "create", other.home, "--from", log.home)
    assert (status, "files, such as" in error, "--from" in error) == (6, True, True)
    assert sorted(other.home.rglob("*")) == before
    left = tmp_path / "left"
    (left / "lost+found").mkdir(parents=True)
    (left / "log").mkdir()
    assert ran(capsys, "create", left, "--from", log.home)[0] == 0
    (left / "notes.txt").write_text("ours")
    assert ran(capsys, "create", left, "--from", log.home)[0] == 0
    with DirectoryStorage(left).lock():
        status, _, error = ran(capsys, "create", left, "--from", log.home)
    assert (status, "another backup runs" in error) == (6, True)


def test_a_source_without_committed_records_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: an empty backup of one of several Kafka controllers is not taken for a good one."""
    kafka = KafkaDirectory(tmp_path / "kafka", voters=3)
    kafka.batch(TopicRecord("a", b"a" * 16))
    status, _, error = ran(capsys, "create", tmp_path / "target", "--from", kafka.path)
    assert (status, "no record is known to be committed" in error) == (4, True)
    assert ran(capsys, "verify", tmp_path / "target")[0] == 4


def test_what_a_source_lacks_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = AuditLog(tmp_path / "node")
    log.elect(1)
    log.commit()
    (log.home / "meta.properties").unlink()
    status, _, error = ran(capsys, "create", tmp_path / "target", "--from", log.home)
    assert (status, "meta.properties: the directory is not formatted" in error) == (0, True)


def test_positions_that_a_backup_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = AuditLog(tmp_path / "node")
    log.elect(1)
    log.world(5, 20)
    end = log.commit()
    begin = log.checkpoint().offset
    log.log.advance_start(OffsetAndEpoch(begin, 1))
    target, folder = tmp_path / "target", tmp_path / "new"
    assert ran(capsys, "create", target, "--from", log.home)[0] == 0
    new = (folder, "--node-id", 1, "--endpoint", "n1:9093", "--cluster-id", CLUSTER_ID)
    for command, option in (((folder,), "--to"), (new, "--at")):
        name = "extract" if option == "--to" else "restore"
        status, _, error = ran(capsys, name, target, *command, f"{option}-offset", end + 1)
        assert (status, f"offsets {begin} to {end}, not of {end + 1}" in error) == (4, True)
        status, _, error = ran(capsys, name, target, *command, f"{option}-time", "2001-01-01")
        assert (status, f"as of offset {begin}: earlier states" in error) == (4, True)
        assert "backup create" not in error
        assert not folder.exists(), "nothing is made of an impossible request"


def test_a_drill_needs_its_scratch_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, error = ran(capsys, "drill", tmp_path, "--scratch", tmp_path / "nowhere")
    assert (status, "does not exist" in error) == (2, True)
    status, _, error = ran(capsys, "verify", tmp_path / "nowhere")
    assert (status, f"{tmp_path / 'nowhere'}: no complete backup" in error) == (4, True)


def test_a_url_of_fsspec(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = AuditLog(tmp_path / "node")
    log.elect(1)
    log.commit()
    url = f"memory://commands-{tmp_path.name}"
    assert ran(capsys, "create", url, "--from", log.home)[0] == 0
    assert ran(capsys, "drill", url)[0] == 0
    assert fsspec.filesystem("memory").ls(url.removeprefix("memory:/"))


def test_following_adds_what_is_new_until_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = AuditLog(tmp_path / "node")
    log.elect(1)
    ends = [log.commit()]

    def wait(seconds: float) -> None:
        assert seconds == 7
        if len(ends) == 3:
            raise KeyboardInterrupt
        log.command(TopicRecord(f"t{len(ends)}", bytes([len(ends)]) * 16))
        ends.append(log.commit())

    monkeypatch.setattr("quorate.cli.backup.time.sleep", wait)
    target = tmp_path / "target"
    status, _, error = ran(capsys, "create", target, "--from", log.home, "--follow", 7)
    assert status == 130
    assert f"up to offset {ends[-1]}" in error
    manifest, _ = newest_manifest(DirectoryStorage(target))
    assert (manifest.sequence, manifest.end.offset) == (3, ends[-1])


def test_extract(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: what is written shows past states to the tools, and starts no server."""
    log = AuditLog(tmp_path / "node", segment_bytes=3000)
    log.elect(1)
    world = World(log, DirectoryStorage(tmp_path / "target"))
    world.grow()
    trimmed(log)
    middle = world.grow()
    end = world.grow()
    world.back_up()
    target = tmp_path / "target"
    for number, (options, reached) in enumerate(
        (
            ((), end),
            (("--to-offset", middle), middle),
            (("--to-time", TIME_0 + middle - 1), middle),
        )
    ):
        directory = tmp_path / f"extract-{number}"
        status, found, error = ran(capsys, "extract", target, directory, *options)
        assert (status, found["end_offset"]) == (0, reached), error
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        status = main(["state", str(directory), "--count", "-o", "json"])
        state = json.loads(capsys.readouterr().out)
        assert (status, state["state_digest"]) == (0, state_digest(log.image_at(reached)).hex())
        assert main(["log", "verify", str(directory)]) == 0
        capsys.readouterr()
        with pytest.raises(IdentityError, match="missing beside a metadata log"):
            load_identity(OsFileSystem(), directory)
    assert ran(capsys, "extract", target, directory)[0] == 5
    status, _, error = ran(capsys, "extract", target, tmp_path / "no", "--to-offset", end + 1)
    assert (status, f"to {end}, not of {end + 1}" in error) == (4, True)
    status, _, error = ran(capsys, "extract", target, tmp_path / "no", "--to-time", TIME_0)
    assert (status, "earlier states are not in it" in error) == (4, True)
    assert ran(capsys, "extract", target, tmp_path / "no", "--to-time", 1, "--to-offset", 1)[0] == 2


def test_restore_needs_consent_and_an_empty_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = AuditLog(tmp_path / "node")
    log.elect(1)
    log.world(5, 20)
    end = log.commit()
    target, home = tmp_path / "target", tmp_path / "new"
    assert ran(capsys, "create", target, "--from", log.home)[0] == 0
    cluster_id = newest_manifest(DirectoryStorage(target))[0].cluster_id
    node = ("--node-id", 7, "--endpoint", "n7:9093")
    status, _, error = ran(capsys, "restore", target, home, *node)
    assert (status, "--cluster-id" in error, home.exists()) == (6, True, False)
    assert ran(capsys, "restore", target, home, *node, "--cluster-id", "other")[0] == 6
    assert not home.exists()
    sure = (*node, "--cluster-id", cluster_id)
    assert ran(capsys, "restore", target, home, *sure, "--at-offset", end + 1)[0] == 4
    early = tmp_path / "early"
    at = (*sure, "--at-time", str(TIME_0 + 5))
    status, found, _ = ran(capsys, "restore", target, early, *at)
    assert (status, 0 < found["restored_to"] < end) == (0, True)
    whole = tmp_path / "whole"
    status, found, said = ran(capsys, "restore", target, whole, *sure, "--reason", "a drill")
    assert (status, found["restored_to"], found["end_offset"]) == (0, end, end + 3)
    assert f"--log-incarnation {found['log_incarnation']['id']}" in said
    assert ran(capsys, "restore", target, whole, *sure)[0] == 5
    assert main(["recover", "report", str(whole), "-o", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["operation"], row["reason"]) == ("restore", "a drill")
    assert row["report"]["restored_to"] == end

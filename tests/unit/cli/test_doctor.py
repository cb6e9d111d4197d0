"""The doctor sees what is wrong and leaves everything as it was."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from quorate.cli.main import main
from quorate.config.sections import BootstrapConfig, NodeConfig
from quorate.config.server_config import ServerConfig
from quorate.doctor import checks as doctor_module
from quorate.doctor.checks import examine_node, foreign_packages, measure_disk
from quorate.doctor.finding import CheckResult
from quorum.batch import scan_batches
from quorum.log.filesystem import OsFileSystem
from quorum.log.high_watermark_file import HighWatermarkFile, Watermarks
from quorum.log.layout import WATERMARK_NAMES
from tests.support.audit_log import AuditLog


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "d"
    arguments = ["--cluster-id", "c", "--node-id", "1", "--data-dir", str(folder), "--standalone"]
    assert main(["format", *arguments]) == 0
    return folder


def check_results(config: ServerConfig) -> dict[str, CheckResult]:
    return {finding.check: finding.check_result for finding in examine_node(config)}


def test_a_intact_node(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    before = sorted(path.name for path in data_dir.rglob("*"))
    settings = ["--set", "node.id=1", "--set", f"node.data_dir={data_dir}"]
    status = main(["doctor", "--disk", "--deep", "-o", "json", *settings])
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert status == 0
    assert {row["check_result"] for row in rows} <= {"ok", "warning"}
    assert {"packages", "data directory", "disk sync"} <= {row["check"] for row in rows}
    assert sorted(path.name for path in data_dir.rglob("*")) == before


def test_a_directory_of_another_node(data_dir: Path) -> None:
    config = ServerConfig(node=NodeConfig(id=2, data_dir=data_dir))
    assert check_results(config)["data directory"] is CheckResult.FAILED


def test_an_unformatted_directory(tmp_path: Path) -> None:
    config = ServerConfig(node=NodeConfig(id=2, data_dir=tmp_path))
    assert check_results(config)["data directory"] is CheckResult.FAILED


def test_files_set_aside_are_shown(data_dir: Path) -> None:
    (data_dir / "__cluster_metadata-0" / "00000000000000000000.log.damaged").write_bytes(b"")
    config = ServerConfig(node=NodeConfig(id=1, data_dir=data_dir))
    assert check_results(config)["quarantine"] is CheckResult.WARNING


def test_a_checkpoint_under_another_name_is_named(data_dir: Path) -> None:
    partition = data_dir / "__cluster_metadata-0"
    name = f"{414:020d}-{0:010d}.checkpoint"
    shutil.copy(partition / f"{0:020d}-{0:010d}.checkpoint", partition / name)
    config = ServerConfig(node=NodeConfig(id=1, data_dir=data_dir))
    assert check_results(config)[name] is CheckResult.FAILED


@pytest.mark.parametrize("with_marks", [True, False])
def test_deep_finds_a_corrupt_epoch(
    data_dir: Path, with_marks: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the last batch of all, where no later one contradicts it, by the stored digest."""
    partition = data_dir / "__cluster_metadata-0"
    bench = AuditLog(data_dir.parent / "other")
    for epoch in (1, 2, 3):
        bench.elect(epoch)
    bench.commit()
    for name in (f"{0:020d}.log", f"{0:020d}.digest", *(WATERMARK_NAMES if with_marks else ())):
        shutil.copy(bench.partition / name, partition / name)
    path = partition / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    last = scan_batches(bytes(data))[-1 if with_marks else 0].position
    data[last + 14] ^= 1
    path.write_bytes(data)
    settings = ["--set", "node.id=1", "--set", f"node.data_dir={data_dir}"]
    capsys.readouterr()
    assert main(["doctor", "--deep", "-o", "json", *settings]) == 3
    rows = {row["check"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    check = "log digest" if with_marks else f"content of {path.name}"
    assert rows[check]["check_result"] == "failed"


def test_deep_misses_no_beginning(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A log of which nothing is left passes for none that reaches its stored end."""
    partition = data_dir / "__cluster_metadata-0"
    bench = AuditLog(data_dir.parent / "other")
    bench.elect(1)
    bench.commit()
    shutil.copy(bench.partition / "high-watermark", partition / "high-watermark")
    for path in partition.glob("*.log"):
        path.unlink()
    settings = ["--set", "node.id=1", "--set", f"node.data_dir={data_dir}"]
    capsys.readouterr()
    assert main(["doctor", "--deep", "-o", "json", *settings]) == 3
    rows = {row["check"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["log digest"]["check_result"] == "failed"
    assert "no segment is left" in rows["log digest"]["seen"]


@pytest.mark.parametrize("position", [0, 5, 30, -2])
def test_an_election_state_that_no_start_takes(
    data_dir: Path, position: int, capsys: pytest.CaptureFixture[str]
) -> None:
    path = data_dir / "__cluster_metadata-0" / "quorum-state"
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)
    settings = ["--set", "node.id=1", "--set", f"node.data_dir={data_dir}"]
    capsys.readouterr()
    assert main(["doctor", "-o", "json", *settings]) == 3
    rows = {row["check"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["quorum-state"]["check_result"] == "failed"
    assert "section Election-state" in rows["quorum-state"]["remedy"]


def test_an_election_state_that_is_missing_or_older(data_dir: Path) -> None:
    config = ServerConfig(node=NodeConfig(id=1, data_dir=data_dir))
    partition = data_dir / "__cluster_metadata-0"
    assert check_results(config)["quorum-state"] is CheckResult.OK
    file = HighWatermarkFile(OsFileSystem(), partition)
    file.store_durably(Watermarks(0, 0, 7))
    file.close()
    assert check_results(config)["quorum-state"] is CheckResult.FAILED
    (partition / "quorum-state").unlink()
    assert check_results(config)["quorum-state"] is CheckResult.FAILED


@pytest.mark.parametrize(
    ("name", "check", "check_result"),
    [
        ("log-start", "log-start", CheckResult.FAILED),
        ("partition.metadata", "partition.metadata", CheckResult.FAILED),
        ("quarantined-log", "quarantined-log", CheckResult.FAILED),
        ("high-watermark", "high-watermark", CheckResult.WARNING),
        ("high-watermark-copy", "high-watermark", CheckResult.WARNING),
        ("leader-epoch-checkpoint", "leader-epoch-checkpoint", CheckResult.WARNING),
        ("00000000000000000000.digest", "digests", CheckResult.WARNING),
    ],
)
def test_every_side_file_is_read(
    data_dir: Path, name: str, check: str, check_result: CheckResult
) -> None:
    config = ServerConfig(node=NodeConfig(id=1, data_dir=data_dir))
    HighWatermarkFile(OsFileSystem(), data_dir / "__cluster_metadata-0").close()
    assert check_results(config)[check] is CheckResult.OK
    (data_dir / "__cluster_metadata-0" / name).write_bytes(b"nonsense")
    found = check_results(config)
    assert found[check] is check_result
    assert [other for other, seen in found.items() if seen is not CheckResult.OK] == [check]


def test_names_that_do_not_resolve_and_even_voters(data_dir: Path) -> None:
    config = ServerConfig(
        node=NodeConfig(id=1, data_dir=data_dir),
        bootstrap=BootstrapConfig(
            servers=("no-such-host.invalid:1", "127.0.0.1:9190"),
            voters=("1@127.0.0.1:1", "2@127.0.0.1:2"),
        ),
    )
    found = check_results(config)
    assert found["address no-such-host.invalid:1"] is CheckResult.FAILED
    assert found["address 127.0.0.1:9190"] is CheckResult.OK
    assert found["voters"] is CheckResult.WARNING


def test_too_little_space(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(data_dir)
    monkeypatch.setattr(doctor_module.shutil, "disk_usage", lambda _path: usage._replace(free=0))
    config = ServerConfig(node=NodeConfig(id=1, data_dir=data_dir))
    assert check_results(config)["disk space"] is CheckResult.FAILED


def test_a_foreign_package_of_our_name_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another distribution's `statemachine` in front of ours would run the wrong code."""
    foreign = tmp_path / "statemachine_like_theirs"
    foreign.mkdir()
    (foreign / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert foreign_packages() == []
    (problem,) = foreign_packages(["statemachine_like_theirs"])
    assert "would come from" in problem
    assert foreign_packages(["no_such_package_of_ours"]) == [
        "package no_such_package_of_ours is missing"
    ]
    sys.modules.pop("statemachine_like_theirs", None)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    assert measure_disk(tmp_path / "missing").check_result is CheckResult.FAILED

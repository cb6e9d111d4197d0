"""The doctor sees what is wrong and leaves everything as it was."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from quorate import doctor as doctor_module
from quorate.cli.main import main
from quorate.config import ServerConfig
from quorate.config_sections import BootstrapConfig, NodeConfig
from quorate.doctor import Verdict, examine_node, foreign_packages, measure_disk


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "d"
    arguments = ["--cluster-id", "c", "--node-id", "1", "--data-dir", str(folder), "--standalone"]
    assert main(["format", *arguments]) == 0
    return folder


def verdicts(config: ServerConfig) -> dict[str, Verdict]:
    return {finding.check: finding.verdict for finding in examine_node(config)}


def test_a_sound_node(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    before = sorted(path.name for path in data_dir.rglob("*"))
    settings = ["--set", "node.id=1", "--set", f"node.data_dir={data_dir}"]
    status = main(["doctor", "--disk", "--deep", "-o", "json", *settings])
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert status == 0
    assert {row["verdict"] for row in rows} <= {"ok", "warning"}
    assert {"packages", "data directory", "disk sync"} <= {row["check"] for row in rows}
    assert sorted(path.name for path in data_dir.rglob("*")) == before


def test_a_directory_of_another_node(data_dir: Path) -> None:
    config = ServerConfig(node=NodeConfig(id=2, data_dir=data_dir))
    assert verdicts(config)["data directory"] is Verdict.FAILED


def test_an_unformatted_directory(tmp_path: Path) -> None:
    config = ServerConfig(node=NodeConfig(id=2, data_dir=tmp_path))
    assert verdicts(config)["data directory"] is Verdict.FAILED


def test_files_set_aside_are_shown(data_dir: Path) -> None:
    (data_dir / "__cluster_metadata-0" / "00000000000000000000.log.damaged").write_bytes(b"")
    config = ServerConfig(node=NodeConfig(id=1, data_dir=data_dir))
    assert verdicts(config)["quarantine"] is Verdict.WARNING


def test_names_that_do_not_resolve_and_even_voters(data_dir: Path) -> None:
    config = ServerConfig(
        node=NodeConfig(id=1, data_dir=data_dir),
        bootstrap=BootstrapConfig(
            servers=("no-such-host.invalid:1", "127.0.0.1:9190"),
            voters=("1@127.0.0.1:1", "2@127.0.0.1:2"),
        ),
    )
    found = verdicts(config)
    assert found["address no-such-host.invalid:1"] is Verdict.FAILED
    assert found["address 127.0.0.1:9190"] is Verdict.OK
    assert found["voters"] is Verdict.WARNING


def test_too_little_space(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(data_dir)
    monkeypatch.setattr(doctor_module.shutil, "disk_usage", lambda _path: usage._replace(free=0))
    config = ServerConfig(node=NodeConfig(id=1, data_dir=data_dir))
    assert verdicts(config)["disk space"] is Verdict.FAILED


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
    assert measure_disk(tmp_path / "missing").verdict is Verdict.FAILED

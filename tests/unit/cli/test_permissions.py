"""Commands that read directories, without the permission to write or to read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quorate.cli.exits import Exit
from quorate.cli.main import main
from quorum.log.directory_lock import LOCK_NAME
from tests.support.audit_log import AuditLog


@pytest.fixture
def home(tmp_path: Path) -> Path:
    log = AuditLog(tmp_path / "node")
    log.elect(1)
    log.voters(1, 2, 3)
    log.commit()
    log.log.close()
    (log.home / LOCK_NAME).touch(mode=0o400)
    return log.home


def test_a_read_only_directory_is_read(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Method: refuse to open anything in it for writing, as a read-only disk does, also to root."""
    open_file = os.open

    def refusing(path: os.PathLike[str] | str, flags: int, *mode: int, **others: int) -> int:
        if Path(path).is_relative_to(home) and flags & (os.O_WRONLY | os.O_RDWR):
            raise PermissionError(13, "Permission denied", str(path))
        return open_file(path, flags, *mode, **others)

    monkeypatch.setattr(os, "open", refusing)
    out = str(tmp_path / "out")
    assert main(["state", str(home), "--count"]) == Exit.OK
    assert main(["log", "verify", str(home)]) == Exit.OK
    assert main(["recover", "plan", str(home)]) == Exit.UNHEALTHY
    assert main(["snapshot", "create", str(home), "--out", out]) == Exit.OK
    assert main(["snapshot", "create", str(home)]) == Exit.USAGE


@pytest.mark.parametrize(
    "command",
    [["state"], ["diff", "--in", "/", "1"], ["shell"], ["log", "verify"], ["recover", "plan"]],
    ids=" ".join,
)
def test_a_directory_that_may_not_be_read(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: list[str],
) -> None:
    """One line says which file, and what to do; root may read everything, so the refusal is set."""
    stat = os.stat

    def refusing(path: os.PathLike[str] | str | int, **others: object) -> os.stat_result:
        if not isinstance(path, int) and home in (Path(path), *Path(path).parents):
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, **others)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "stat", refusing)
    assert main([*command, str(home / "below")]) != Exit.OK
    shown = capsys.readouterr().err
    assert "unexpected" not in shown
    assert "Traceback" not in shown


def test_a_server_on_a_directory_of_another_account_is_a_mistake(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2: systemd does not start it again. Root may open all, so this one refuses."""
    open_file = os.open

    def refusing(path: os.PathLike[str] | str, flags: int, *mode: int, **others: int) -> int:
        if Path(path).is_relative_to(home):
            raise PermissionError(13, "Permission denied", str(path))
        return open_file(path, flags, *mode, **others)

    monkeypatch.setattr(os, "open", refusing)
    settings = ["--set", f"node.data_dir={home}", "--set", "node.id=1"]
    assert main(["server", *settings]) == Exit.USAGE
    assert "run it as the account that owns the files" in capsys.readouterr().err

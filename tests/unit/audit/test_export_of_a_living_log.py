"""Exporting the directory of a node that trims its log at the same moment."""

from __future__ import annotations

from pathlib import Path

import pytest

import audit.export
from audit.export import export_log
from quorum.errors import StorageError


def test_a_trimmed_segment_makes_planning_start_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: a live directory can be exported. Method: the first plan loses a file, the next not."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "00000000000000000000.log").touch()
    plans: list[int] = []

    def planned(*_: object) -> str:
        plans.append(len(plans))
        if len(plans) == 1:
            (source / "00000000000000000000.log").unlink()
            raise StorageError("cannot open", source)
        return "report"

    monkeypatch.setattr(audit.export, "_export_planned", planned)
    assert export_log(source, tmp_path / "target") == "report"
    assert plans == [0, 1]


def test_a_failure_without_a_change_is_reported_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: a damaged source is not retried for ever. Method: fail, change nothing."""
    plans: list[int] = []

    def planned(*_: object) -> str:
        plans.append(len(plans))
        raise StorageError("cannot read", tmp_path)

    monkeypatch.setattr(audit.export, "_export_planned", planned)
    with pytest.raises(StorageError, match="cannot read"):
        export_log(tmp_path, tmp_path / "target")
    assert plans == [0]

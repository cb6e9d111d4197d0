"""The notebook of the audit trail runs, cell by cell, and answers what a replay does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from audit.export import export_log
from tests.support.audit_answers import leaders, trimmed_log

NOTEBOOK = Path(__file__).resolve().parents[3] / "examples" / "notebooks" / "audit.ipynb"


def test_every_cell_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    log = trimmed_log(tmp_path / "node")
    export_log(log.home, tmp_path / "out")
    monkeypatch.setenv("QUORATE_EXPORT", str(tmp_path / "out"))
    monkeypatch.setenv("MPLBACKEND", "Agg")
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    seen: dict[str, Any] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            # Without what a run left: outputs name machines and people.
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
            exec(compile("".join(cell["source"]), cell["id"], "exec"), seen)
    assert len(seen["now"]) == len(leaders(log.machine.image))
    then = leaders(log.image_at(seen["middle"]))
    assert len(seen["then"]) == len(then)
    assert sorted(seen["then"].values()) == sorted(leader for leader, _ in then.values())
    assert {row["principal"] for row in seen["changes"]} >= {"User:controller", "User:0"}
    assert all(row["reason"].startswith("step") for row in seen["configs"])

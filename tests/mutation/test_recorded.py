"""What is kept of a test is valid as long as nothing that it runs has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutation.recorded import Recordings

LINES = {"rules.py": frozenset({3, 4})}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {
        "test_a.py": "from pack.rules import grant",
        "story.scn": "elect 1",
        "pack/__init__.py": "",
        "pack/rules.py": "from pack import deeper",
        "pack/deeper.py": "",
        "other.py": "",
        "simulation/lanes.py": "",
        "simulation/scenario/runner.py": "import pack.deeper",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def recordings(root: Path) -> Recordings:
    return Recordings(root, root / "kept" / "recordings")


@pytest.mark.parametrize("test", ["test_a.py", "story.scn"])
@pytest.mark.parametrize("changed", [None, "other.py", "own", "pack/deeper.py"])
def test_a_record_is_valid_until_something_changes_that_the_test_runs(
    root: Path, test: str, changed: str | None
) -> None:
    before = recordings(root)
    before.keep("t", root / test, 0.5, LINES)
    before.save()
    if changed is not None:
        (root / (test if changed == "own" else changed)).write_text("x = 1")
    found = recordings(root).find("t", root / test)
    assert (found is not None) == (changed in (None, "other.py"))
    assert found is None or (found.cpu_seconds, found.lines) == (0.5, LINES)


def test_a_file_that_cannot_be_read_keeps_nothing(root: Path) -> None:
    assert recordings(root).find("t", None) is None
    (root / "kept").mkdir()
    (root / "kept" / "recordings").write_bytes(b"nothing of the kind")
    assert recordings(root).find("t", None) is None


def test_a_seed_has_no_file_and_depends_on_what_runs_seeds(root: Path) -> None:
    before = recordings(root)
    before.keep("seed", None, 1.0, LINES)
    before.save()
    assert recordings(root).find("seed", None) is not None
    (root / "simulation/lanes.py").write_text("x = 1")
    assert recordings(root).find("seed", None) is None

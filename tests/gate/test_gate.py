"""The gate leaves no test out, and no failure unseen."""

from __future__ import annotations

import errno
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.gate.__main__ import FOLDERS, LONGEST, ROOT, Gate, files_with_processes
from tests.gate.lanes import Lane

GOOD = "def test_good() -> None: pass\n"
BAD = "def test_bad() -> None: assert False\n"
ALONE = f"import pytest\n{GOOD}\n@pytest.mark.alone\n{BAD}"
CONFIGURATION = """
[tool.pytest.ini_options]
markers = ["alone: ", "long: ", "nightly: ", "bench: "]
"""


@pytest.fixture(autouse=True)
def _the_plugin_is_found_in_a_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in {"pyproject.toml": CONFIGURATION, **files}.items():
        file = root / "tree" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root / "tree"


def failed(folder: Path, files: dict[str, str]) -> set[str]:
    return set(Gate(folder, write(folder, files), ()).run())


def test_the_totals_are_over_all_processes(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    skipped = "import pytest\ndef test_skipped() -> None: pytest.skip('needs x')\n"
    files = {
        "tests/unit/test_a.py": GOOD + BAD,
        "tests/chaos/test_b.py": skipped + GOOD,
        "tests/spark/test_c.py": "import no_such_module\n",
        "tests/integration/test_d.py": ALONE,
    }
    gate = Gate(tmp_path, write(tmp_path, files), ())
    gate.run()
    # What cannot be imported is an error in its own run, and ends the run of those alone.
    assert gate.totals == "3 passed, 3 failed, 1 skipped"
    lines = [each for each in capfd.readouterr().out.splitlines() if " s  " in each]
    assert len(lines) > len(files)
    assert all(each.endswith(" s of processor time)") for each in lines)


def test_every_kind_of_run_reports_its_failures(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Of tests that compute, files with processes, tests that run alone; what is good passes."""
    files = {
        "tests/unit/test_a.py": BAD,
        "tests/property/test_e.py": BAD,
        "tests/simulation/test_f.py": BAD,
        "tests/chaos/test_b.py": BAD,
        "tests/spark/test_c.py": GOOD,
        "tests/integration/deep/test_d.py": ALONE,
    }
    kinds = {"unit", "simulation", "others", "tests/chaos/test_b.py", "alone"}
    assert failed(tmp_path, files) == kinds
    assert capfd.readouterr().out.count("def test_bad() -> None: assert False") == len(kinds)


def test_the_long_lane_runs_what_the_other_leaves_out_and_each_counts_it(tmp_path: Path) -> None:
    marked = [f"\n@pytest.mark.{mark}\n{GOOD}" for mark in ("long", "alone\n@pytest.mark.long")]
    files = {
        "tests/unit/test_a.py": f"import pytest\n{GOOD}{marked[0].replace('good', 'long')}",
        "tests/chaos/test_b.py": f"import pytest\n{marked[0]}{marked[1].replace('good', 'late')}",
        "tests/spark/test_c.py": GOOD,
        "tests/interop/test_d.py": f"import pytest\n@pytest.mark.nightly\n{BAD}",
    }
    root = write(tmp_path, files)
    for lane, totals, left in (
        (Lane.TEST, "2 passed", ["3 left out: make test-long", "1 left out: make nightly"]),
        (Lane.LONG, "3 passed", ["2 left out: make test", "1 left out: make nightly"]),
    ):
        gate = Gate(tmp_path / lane, root, (), lane)
        assert gate.run() == []
        assert gate.totals == f"{totals}, 0 failed, 0 skipped"
        assert gate.left_out == left


@pytest.mark.long
def test_python_keeps_what_it_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting against bytecode would cause hundreds of compilations here."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    asked = "import os\ndef test(): assert 'PYTHONDONTWRITEBYTECODE' not in os.environ\n"
    assert failed(tmp_path, {"tests/unit/test_a.py": asked}) == set()


def test_no_process_is_started_for_a_file_without_tests_of_the_lane(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    nightly = f"import pytest\n@pytest.mark.nightly\n{BAD}"
    files = {
        "tests/unit/test_a.py": GOOD,
        "tests/chaos/test_b.py": nightly,
        "tests/chaos/test_c.py": GOOD,
    }
    assert failed(tmp_path, files) == set()
    out = capfd.readouterr().out
    assert "tests/chaos/test_c.py: " in out
    assert "test_b.py" not in out


@pytest.mark.long
def test_a_file_that_cannot_be_imported_is_a_failure(tmp_path: Path) -> None:
    files = {"tests/unit/test_a.py": GOOD, "tests/interop/test_b.py": "import no_such_module\n"}
    assert failed(tmp_path, files) == {"tests/interop/test_b.py", "alone"}


@pytest.mark.long
def test_no_computing_tests_at_all_are_a_failure(tmp_path: Path) -> None:
    assert failed(tmp_path, {"tests/chaos/test_b.py": GOOD}) == {"computing"}


@pytest.mark.long
def test_a_run_that_cannot_be_started_does_not_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fork may fail for want of memory: the files that are left in the queue have not passed."""
    start = subprocess.run

    def run(command: list[str], **options: Any) -> Any:
        if "tests/chaos/test_b.py" in command:
            raise BlockingIOError(errno.EAGAIN, "no more processes")
        return start(command, **options)

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(BlockingIOError):
        failed(tmp_path, {"tests/unit/test_a.py": GOOD, "tests/chaos/test_b.py": GOOD})


@pytest.mark.long
def test_a_file_may_be_named_either_way(tmp_path: Path) -> None:
    files = {"tests/unit/test_a.py": GOOD, "tests/chaos/b_test.py": BAD}
    assert failed(tmp_path, files) == {"tests/chaos/b_test.py"}


def test_files_that_take_longest_are_there_and_come_first() -> None:
    files = files_with_processes(ROOT, LONGEST)
    assert tuple(files[: len(LONGEST)]) == LONGEST
    assert len(files) == len(set(files))
    assert {each.split("/")[1] for each in files} == set(FOLDERS)
    with pytest.raises(LookupError, match="no such test files"):
        files_with_processes(ROOT, ("tests/chaos/test_gone.py",))

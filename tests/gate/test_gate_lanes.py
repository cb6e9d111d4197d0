"""Every test is in one lane, and what `make test` promises is in its own."""

from __future__ import annotations

import collections
import itertools
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.gate.__main__ import ROOT
from tests.gate.lanes import LANE_OF_MARK, LEFT_OUT, Lane, lane_of

MARKS = tuple(LANE_OF_MARK)
COMBINATIONS = [
    marks for count in range(len(MARKS) + 1) for marks in itertools.combinations(MARKS, count)
]


def collected(lane: Lane, root: Path, *where: str) -> tuple[list[str], dict[str, int]]:
    """The tests of a lane, and how many of the others are left out."""
    command = [sys.executable, "-m", "pytest", "-p", "tests.gate.lanes", "--lane", lane, *where]
    command += ["--collect-only", "-p", "no:cacheprovider"]
    command += ["-o", "addopts=-q --import-mode=importlib"]
    run = subprocess.run(
        command,
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED), run.stdout
    found = [line for line in run.stdout.splitlines() if "::" in line]
    return found, {name: int(count) for count, name in LEFT_OUT.findall(run.stdout)}


def test_whatever_a_test_and_its_file_are_marked_with_it_is_in_one_lane(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each pair of marks, on the file and on the test, is collected in one lane of three."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    declared = ", ".join(f'"{mark}: "' for mark in MARKS)
    (tmp_path / "pyproject.toml").write_text(f"[tool.pytest.ini_options]\nmarkers = [{declared}]\n")
    for of_file in COMBINATIONS:
        marks = ", ".join(f"pytest.mark.{mark}" for mark in of_file)
        text = f"import pytest\npytestmark = [{marks}]\n"
        for of_test in COMBINATIONS:
            text += "".join(f"@pytest.mark.{mark}\n" for mark in of_test)
            text += f"def test_{'_'.join(of_test)}(): pass\n"
        (tmp_path / f"test_{'_'.join(of_file)}.py").write_text(text)
    lanes = {lane: collected(lane, tmp_path) for lane in Lane}
    times = collections.Counter(test for tests, _ in lanes.values() for test in tests)
    assert len(times) == len(COMBINATIONS) ** 2
    assert set(times.values()) == {1}
    for lane, (_, left) in lanes.items():
        assert left == {each: len(lanes[each][0]) for each in Lane if each is not lane}


def test_a_test_goes_to_the_longest_run_that_it_names() -> None:
    assert lane_of(["integration"]) is Lane.TEST
    assert lane_of(["integration", "long"]) is Lane.LONG
    assert lane_of(["long", "nightly"]) is Lane.NIGHTLY
    assert lane_of(["bench", "long"]) is Lane.NIGHTLY


def test_the_marks_and_the_commands_exist() -> None:
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text())
    declared = configuration["tool"]["pytest"]["ini_options"]["markers"]
    assert {*MARKS} <= {each.partition(":")[0] for each in declared}
    makefile = (ROOT / "Makefile").read_text()
    for lane in Lane:
        assert f"\n{lane}: setup " in makefile


def test_every_change_is_tried_on_real_processes_and_by_a_demo() -> None:
    """`make test` starts three nodes, kills, shows the demo once and has one Spark session."""
    found, left = collected(Lane.TEST, ROOT, "tests/integration", "tests/spark", "tests/campaigns")
    assert left["test-long"] > 0
    for each in FAST:
        assert any(test.startswith(each) for test in found), each


FAST = (
    "tests/integration/test_demo.py::test_the_whole_job",
    "tests/integration/test_wiped_disk.py::",
    "tests/integration/test_paused_leader.py::",
    "tests/spark/test_spark_audit.py::",
    "tests/campaigns/test_mutated_calls.py::test_a_short_campaign_changes_nothing",
)
"""Three nodes and more; another's data lost; a leader replaced; Spark; hostile calls."""

"""``quorate sim``: its output, and its exit when a seed fails."""

from __future__ import annotations

import json
import math
from itertools import islice
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from quorate.cli.main import main
from simulation import enforcement
from simulation.cli.sim import seeds_until
from simulation.invariants.reads import ConfirmedReads
from simulation.lanes import run_lane
from simulation.options import Options

SCENARIO = Path(__file__).parents[2] / "scenario" / "testdata" / "restart" / "torn_tail.scn"
SHORT = ("--events", "300", "--voters", "3")


def test_a_clean_run_reports_its_counts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "run", "--seeds", "5..7", "--jobs", "1", "-o", "json", *SHORT]) == 0

    found = json.loads(capsys.readouterr().out)
    assert (found["kind"], found["seeds"], found["failed_seeds"]) == ("SimulationRun", 2, [])
    assert found["events_per_cpu_second"] > 0
    happened = {row["what"]: row["count"] for row in found["rows"]}
    assert happened["events"] >= 600
    assert happened["acknowledged"] > 0


def test_a_failing_seed_is_shown_with_the_line_that_replays_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: ConfirmedReads, *_: object) -> None:
        self.fail("nothing may be read")

    monkeypatch.setattr(ConfirmedReads, "on_read", refuse)

    assert main(["sim", "run", "--seeds", "5..6", "--jobs", "1", *SHORT]) == 1

    error = capsys.readouterr().err
    assert "seed 5: confirmed-reads: nothing may be read" in error
    assert "replay: quorate sim replay 5 --voters 3 --events 300 --trace" in error
    assert "1 of 1 seeds failed: 5" in error
    assert main(["sim", "replay", "5", *SHORT]) == 1
    assert "confirmed-reads" in capsys.readouterr().err


def test_a_replay_is_the_same_run(capsys: pytest.CaptureFixture[str]) -> None:
    hashes = set()
    for _ in range(2):
        assert main(["sim", "replay", "5", "-o", "json", "--faults", "crash", *SHORT]) == 0
        hashes.add(json.loads(capsys.readouterr().out)["trace"])
    assert len(hashes) == 1
    assert main(["sim", "replay", "5", "--trace", "--faults", "crash", *SHORT]) == 0
    assert capsys.readouterr().out.count("\n") > 300


def test_too_little_happening_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Method: so few seeds that they are made quickly, and bounds between such numbers."""
    monkeypatch.setattr(enforcement, "MINIMA_FROM_SEEDS", 3)
    monkeypatch.setattr(enforcement, "MINIMA_FROM_EVENTS", 1)
    monkeypatch.setattr(enforcement, "MINIMA", {"default": {"leaders": 100_000}})
    arguments = ["sim", "run", "--jobs", "1", "--events", "20", "--seeds"]
    assert main([*arguments, "2"]) == 0
    capsys.readouterr()
    assert main([*arguments, "3"]) == 3
    printed = capsys.readouterr()
    assert "too little happened: leaders: " in printed.err
    assert "in 3 seeds, at least 30 are needed" in printed.err
    assert rows_of(printed.out)["leaders"][-1] == "30"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--seeds", "2"), "2 seeds are fewer than 50"),
        (("--seeds", "50", "--voters", "1"), "only in clusters of the usual shape"),
        (("--seeds", "2", "--observers", "0"), "usual shape everything may happen; 2 seeds"),
        pytest.param(
            ("--seeds", "50"),
            "fault phases of 20 events are shorter than 1000",
            marks=pytest.mark.long,
        ),
    ],
)
def test_minima_that_are_not_enforced_are_not_shown_as_if_they_were(
    arguments: tuple[str, ...], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["sim", "run", "--jobs", "1", "--events", "20", "--faults", "network", *arguments]
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert f"not enforced: {reason}" in printed or reason in printed
    rows = rows_of(printed)
    assert rows["events"][-1].isdigit()
    assert rows["leaders"][-2:] == ["not", "enforced"]
    assert main([*command, "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["minima"].startswith("not enforced: ")
    assert reason in found["minima"]
    least = {row["what"]: row["least"] for row in found["rows"]}
    assert least.pop("events") == 20 * found["seeds"]
    assert set(least.values()) == {"not enforced"}


def rows_of(printed: str) -> dict[str, list[str]]:
    """The words of each line behind its first."""
    return {words[0]: words[1:] for line in printed.splitlines() if (words := line.split())}


def test_minutes_go_on_with_new_seeds_until_they_are_over() -> None:
    assert list(islice(seeds_until(range(5, 7), math.inf), 4)) == [5, 6, 7, 8]
    assert list(seeds_until(range(5, 7), -math.inf)) == []
    assert list(seeds_until(range(5, 7), None)) == [5, 6]
    report = run_lane(iter([5]), Options(events=200, voters=(1,)), jobs=1)
    assert (report.seeds, report.failures) == (1, [])


def test_a_run_without_a_seed_proves_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """The time is over before the first seed could begin."""
    assert main(["sim", "run", "--minutes", "1e-9", "--jobs", "1"]) == 3
    assert "too little happened: no seed was run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "log_problem"),
    [
        (("--seeds", "x"), "neither a number nor A..B"),
        (("--seeds", "9..9"), "has no seeds"),
        (("--voters", "0"), "each must be 1 to 9"),
        (("--observers", "1,b"), "not a list of numbers"),
        (("--faults", "hail"), "'hail' is not one of"),
        (("--minutes", "0"), "expected a number above 0, not '0'"),
    ],
)
def test_wrong_arguments_are_refused(
    arguments: tuple[str, ...], log_problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sim", "run", *arguments]) == 2
    assert log_problem in capsys.readouterr().err


def test_a_scenario_is_run() -> None:
    assert CliRunner().invoke(_sim(), ["scenario", str(SCENARIO)]).exit_code == 0


def test_a_scenario_that_differs_fails(tmp_path: Path) -> None:
    copy = tmp_path / "differs.scn"
    copy.write_text(SCENARIO.read_text(encoding="utf-8").replace("ok\n", "no\n", 1))
    done = CliRunner().invoke(_sim(), ["scenario", str(copy)])
    assert done.exit_code == 1
    assert "differs.scn" in done.output


def test_an_invalid_scenario_file_is_reported_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The others are run all the same."""
    binary = tmp_path / "binary.scn"
    binary.write_bytes(b"# \xff\x00\n")
    copy = tmp_path / "differs.scn"
    copy.write_text(SCENARIO.read_text(encoding="utf-8").replace("ok\n", "no\n", 1))
    with pytest.raises(SystemExit) as ended:
        main(["sim", "scenario", str(binary), str(copy)])
    assert ended.value.code == 1
    printed = capsys.readouterr()
    assert printed.err == f"{binary}: not a scenario: no UTF-8 at byte 2\n"
    assert "differs.scn" in printed.out
    assert main(["sim", "scenario", str(tmp_path)]) == 2
    assert "is a directory" in capsys.readouterr().err


def _sim() -> click.Group:
    from simulation.cli.sim import sim

    return sim

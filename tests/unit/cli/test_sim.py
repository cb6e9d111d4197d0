"""``quorate sim``: what it prints, and how it ends when a seed fails."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from quorate.cli.main import main
from quorate.sim.invariants.reads import ConfirmedReads
from quorate.sim.lanes import run_lane
from quorate.sim.options import Options

SCENARIO = Path(__file__).parents[2] / "scenario" / "testdata" / "restart" / "torn_tail.scn"
SHORT = ("--events", "300", "--voters", "3")


def test_a_clean_run_says_what_happened(capsys: pytest.CaptureFixture[str]) -> None:
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
    """Method: so few seeds that they are made quickly, and a bound between two such numbers."""
    monkeypatch.setattr("quorate.cli.sim.MINIMA_FROM_SEEDS", 3)
    arguments = ["sim", "run", "--jobs", "1", "--events", "1", "--seeds"]
    assert main([*arguments, "2"]) == 0
    assert main([*arguments, "3"]) == 3
    assert "too little happened: " in capsys.readouterr().err


def test_minutes_end_a_run() -> None:
    report = run_lane(iter([5]), Options(events=200, voters=(1,)), jobs=1)
    assert (report.seeds, report.failures) == (1, [])
    assert main(["sim", "run", "--minutes", "0", "--jobs", "1"]) == 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--seeds", "x"), "neither a number nor A..B"),
        (("--seeds", "9..9"), "has no seeds"),
        (("--voters", "0"), "each must be 1 to 9"),
        (("--observers", "1,b"), "no list of numbers"),
        (("--faults", "hail"), "'hail' is not one of"),
    ],
)
def test_wrong_arguments_are_refused(
    arguments: tuple[str, ...], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sim", "run", *arguments]) == 2
    assert complaint in capsys.readouterr().err


def test_a_scenario_is_run() -> None:
    assert CliRunner().invoke(_sim(), ["scenario", str(SCENARIO)]).exit_code == 0


def test_a_scenario_that_differs_fails(tmp_path: Path) -> None:
    copy = tmp_path / "differs.scn"
    copy.write_text(SCENARIO.read_text(encoding="utf-8").replace("ok\n", "no\n", 1))
    done = CliRunner().invoke(_sim(), ["scenario", str(copy)])
    assert done.exit_code == 1
    assert "differs.scn" in done.output


def _sim() -> click.Group:
    from quorate.cli.sim import sim

    return sim

"""Seeds by the hundred must be clean, eventful, and the same in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from simulation import episode
from simulation.episode import run
from simulation.lanes import LaneReport, run_lane, run_seed
from simulation.options import Options

QUICK_SEEDS = 4
CI_SEEDS = 100
NIGHTLY_SEEDS = 2_000
ROOT = Path(__file__).parents[2]


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")


def _assert_clean(report: LaneReport) -> None:
    assert not report.failures, "\n\n".join(text for _, text in report.failures[:3])
    assert not report.shortfalls(), f"{report.shortfalls()}; {report.counts}"


def test_a_few_seeds_are_clean() -> None:
    """Too few seeds to check minimum counts."""
    report = run_lane(range(1, 1 + QUICK_SEEDS))
    assert not report.failures, "\n\n".join(text for _, text in report.failures[:3])


@pytest.mark.long
def test_the_seeds_of_this_lane_are_clean(request: pytest.FixtureRequest) -> None:
    """Run the first seeds, or those asked for; nothing may fail and enough must have happened."""
    seed = request.config.getoption("--sim-seed")
    if seed is not None:
        outcome = run(seed, on_line=_print)
        assert outcome.violation is None, outcome.report()
        return
    _assert_clean(run_lane(range(1, 1 + CI_SEEDS)))


@pytest.mark.nightly
def test_the_seeds_of_a_night_are_clean(request: pytest.FixtureRequest) -> None:
    """As above, for ``--sim-runs`` seeds (default 2,000)."""
    count = request.config.getoption("--sim-runs") or NIGHTLY_SEEDS
    _assert_clean(run_lane(range(1, 1 + count)))


@pytest.mark.long
def test_a_seed_gives_the_same_trace_in_every_process() -> None:
    """Run one seed in two processes with different string hashes."""
    hashes = {_trace_hash("1"), _trace_hash("2")}

    assert len(hashes) == 1
    assert f"seed 7 clean, trace {run(7).trace_hash}" in hashes
    assert f"seed 7 clean, trace {run(8).trace_hash}" not in hashes


def _trace_hash(hash_seed: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation", "--seed", "7"],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    line = done.stdout.splitlines()[0]
    assert line.startswith("seed 7 clean, trace "), done.stdout
    return line


def test_a_seed_in_which_the_simulator_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: one failed seed does not end the run. Method: a fault that raises."""

    def raising_phase(_cluster: object, _events: int) -> None:
        raise LookupError("no such file")

    monkeypatch.setattr(episode, "_fault_phase", raising_phase)
    result = run_seed(7, Options())
    assert result.failure.startswith("seed 7: sim-intact: ")
    assert "LookupError: no such file" in result.failure
    assert "quorate sim replay 7 --trace" in result.failure

"""Profiles name acts that exist, every act is in one, and every profile is clean."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from simulation.episode import run
from simulation.faults.table import ACTS
from simulation.lanes import run_lane
from simulation.minima import MINIMA
from simulation.options import Options
from simulation.profiles import PROFILES

SEEDS = range(1, 21)
QUICK_SEEDS = range(1, 2)
"""Seeds of each profile before every change; the rest of ``SEEDS`` takes minutes."""
OTHERS = sorted({*PROFILES} - {Options().profile})
"""``test_simulation`` runs these seeds, and more, of the default profile."""
ACTS_MIN = 5
"""In a hundred seeds: fewer of an act would not show that it still leads to anything."""


def test_profiles_and_acts_know_each_other() -> None:
    named = {act for profile in PROFILES.values() for act in profile.acts}
    assert named == set(ACTS)
    assert set(MINIMA) == set(PROFILES)


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_no_act_of_a_profile_can_cease_unnoticed(name: str) -> None:
    """A profile with a fault has a minimum count above zero for it."""
    minima = MINIMA[name]
    assert {act for act in PROFILES[name].acts if minima.get(act, 0) < ACTS_MIN} == set()


@pytest.mark.parametrize("name", OTHERS)
def test_a_seed_of_a_profile_is_clean(name: str) -> None:
    report = run_lane(QUICK_SEEDS, Options(name))
    assert not report.failures, report.failures[0][1]


@pytest.mark.long
@pytest.mark.parametrize("name", OTHERS)
def test_the_first_seeds_of_a_profile_are_clean(name: str) -> None:
    report = run_lane(range(QUICK_SEEDS.stop, SEEDS.stop), Options(name))
    assert not report.failures, report.failures[0][1]


@pytest.mark.nightly
@pytest.mark.parametrize("name", sorted(PROFILES))
def test_a_night_of_a_profile_is_clean_and_eventful(
    name: str, request: pytest.FixtureRequest
) -> None:
    count = (request.config.getoption("--sim-runs") or 2_000) // 4
    report = run_lane(range(1, 1 + max(count, 100)), Options(name))
    assert not report.failures, "\n\n".join(text for _, text in report.failures[:3])
    assert not report.shortfalls(), f"{report.shortfalls()}; {report.counts}"


@pytest.mark.long
def test_every_fault_gives_the_same_trace_in_every_process() -> None:
    """Run the profile with all faults in two processes with different string hashes."""
    script = (
        "from simulation.episode import run; from simulation.options import Options\n"
        "print([run(seed, Options('everything', events=600)).trace_hash for seed in (3, 4, 5)])"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(printed) == 1


def test_options_name_the_command_line_that_means_them() -> None:
    assert Options().arguments() == ""
    options = Options("crash", (3, 5), (0,), 100)
    assert options.arguments() == " --faults crash --voters 3,5 --observers 0 --events 100"


def test_the_shape_asked_for_is_the_shape() -> None:
    lines: list[str] = []
    run(1, Options(voters=(5,), observers=(2,), events=20), on_line=lines.append)
    assert "voters=(1, 2, 3, 4, 5) nodes=7" in lines[0]

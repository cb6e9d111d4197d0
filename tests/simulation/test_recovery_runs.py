"""Consumers and programs over recoveries: a few runs before every change, ten thousand at night."""

from __future__ import annotations

import logging

import pytest

from quorate.cli.main import main
from simulation.cli.sim_recoveries import run_seed
from simulation.recoveries.counts import RecoveryCounts


def test_runs_with_recoveries() -> None:
    """Goal: the five properties of ``quorate sim recoveries``; later warnings are logged again."""
    level = logging.getLogger("quorate.client.log_consumer").level
    total = RecoveryCounts()
    for seed in range(12):
        counts, failure = run_seed(seed)
        assert failure == ""
        total.add(counts)
    assert min(total.recoveries, total.lossy_recoveries, total.truncations, total.zombies) > 0
    assert min(total.batches_watched, total.watch_truncations) > 0
    assert logging.getLogger("quorate.client.log_consumer").level == level


@pytest.mark.parametrize("seed", [6717, 7802])
def test_a_program_stays_with_the_newest_leader(seed: int) -> None:
    """A deposed leader granted its epoch to another; both wrote, and its log was recovered."""
    assert run_seed(seed)[1] == ""


@pytest.mark.long
def test_a_seed_runs_the_same_twice() -> None:
    assert run_seed(5) == run_seed(5)


@pytest.mark.nightly
def test_ten_thousand_runs_with_recoveries() -> None:
    """The command fails, too, if a situation that it counts never occurred."""
    command = ["sim", "recoveries", "--seeds", "10000", "--jobs", "2"]
    with pytest.raises(SystemExit) as ended:
        main(command)
    assert ended.value.code == 0

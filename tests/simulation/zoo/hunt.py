"""Searches for a bug: runs seeds in order, or one scenario, until an invariant is violated."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from simulation.episode import run
from simulation.invariants.violation import Violation
from simulation.scenario.grammar import ScenarioError
from simulation.scenario.runner import run_file
from tests.simulation.zoo.bug import Bug

SCENARIOS = Path(__file__).resolve().parents[2] / "scenario" / "testdata"


@dataclass(frozen=True, slots=True)
class Find:
    """How a bug was found."""

    caught_by: str
    """The name of the property."""
    evidence: str
    seed: int
    """0 for a scenario."""
    seconds: float
    """Processor time of the whole search."""


def hunt(bug: Bug, seeds: Iterable[int]) -> Find | None:
    """Patch the replica and search until the bug shows; None if it does not. Undone on return."""
    began_s = time.process_time()
    with pytest.MonkeyPatch.context() as patch:
        bug.install(patch)
        if bug.scenario:
            seed, found = 0, _try_scenario(bug)
        else:
            seed, found = _try_seeds(bug, seeds)
    if found is None:
        return None
    return Find(*found, seed, time.process_time() - began_s)


def _try_seeds(bug: Bug, seeds: Iterable[int]) -> tuple[int, tuple[str, str] | None]:
    seed = 0
    for seed in seeds:
        violation = violation_of(bug, seed)
        if violation is not None:
            return seed, violation
    return seed, None


def violation_of(bug: Bug, seed: int) -> tuple[str, str] | None:
    """Run one seed with the replica as it is patched now; return the violated property."""
    # A run is short and leaves nothing behind: looking for cycles in it is waste.
    gc.disable()
    try:
        if bug.experiment is not None:
            violation = bug.experiment.run(seed)
        else:
            violation = run(seed, bug.options).violation
    finally:
        gc.enable()
    return None if violation is None else (violation.name, str(violation))


def _try_scenario(bug: Bug) -> tuple[str, str] | None:
    try:
        run_file(SCENARIOS / bug.scenario)
    except Violation as violation:
        return violation.name, str(violation)
    except ScenarioError:
        # The next command waits for something that never came: no property failed.
        return None
    return None

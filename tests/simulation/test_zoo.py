"""The simulation finds what was broken on purpose, and finds nothing where nothing was."""

from __future__ import annotations

from functools import cache

import pytest

from tests.simulation.episode import run
from tests.simulation.zoo.bug import Bug
from tests.simulation.zoo.table import BUGS


@cache
def _report_of_clean(seed: int) -> str:
    outcome = run(seed)
    return "" if outcome.violation is None else outcome.report()


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_standing_invariant_catches_it(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    """Break the replica, draw seeds in order until a property fails; mend it and run them again."""
    caught = None
    with monkeypatch.context() as patch:
        bug.install(patch)
        for seed in range(1, bug.seeds + 1):
            outcome = run(seed)
            if outcome.violation is not None:
                caught = outcome
                break

    assert caught is not None, f"{bug.name} was not noticed within {bug.seeds} seeds"
    assert caught.violation is not None
    assert caught.violation.name in bug.caught_by, caught.report()
    for seed in range(1, caught.seed + 1):
        assert _report_of_clean(seed) == ""

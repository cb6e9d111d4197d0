"""What the protocol's tables declare is shown by scenarios, and nothing else happens in any.

Counted from the events and messages of all runs. ``python -m tests.scenario --coverage FILE...``
prints the counts.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from quorum.core.state.timers import all_timers, name_of
from simulation.scenario.coverage import Coverage, declared_answers, declared_transitions
from simulation.scenario.runner import run_file
from tests.scenario.conftest import RUN, SHOWN

TESTDATA = Path(__file__).parent / "testdata"


@pytest.fixture(scope="module")
def shown(pytestconfig: pytest.Config) -> Coverage:
    """What all scenarios together show; those that this session has not run are run now."""
    coverage = pytestconfig.stash[SHOWN]
    for path in set(TESTDATA.rglob("*.scn")) - pytestconfig.stash[RUN]:
        run_file(path, coverage=coverage)
    return coverage


def test_every_change_of_role_is_shown(shown: Coverage) -> None:
    """Goal: the table of roles is neither too wide nor too narrow. Method: RoleChanged events."""
    assert sorted(set(shown.transitions) ^ declared_transitions()) == []


def test_every_answer_is_shown(shown: Coverage) -> None:
    """Goal: every error code of every request. Method: responses, paired with their requests."""
    assert sorted(set(shown.answers) ^ declared_answers()) == []


def test_every_timer_is_shown(shown: Coverage) -> None:
    """Goal: every timer fires, also request timers of every purpose. Method: counts."""
    assert sorted(set(shown.timers) ^ {name_of(timer) for timer in all_timers()}) == []


def test_nodes_that_wake_up_and_act_have_a_timer_as_the_reason(shown: Coverage) -> None:
    """Goal: the list of timers is whole. Method: what was done in ticks without one."""
    assert not shown.wakes

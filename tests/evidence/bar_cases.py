"""For every bar of the evidence: an invented result that just meets it, and one that misses it.

A new lane needs cases, and so does a new condition in a function of ``Bars.evaluates``;
``test_bars.py`` fails without them. The cases are in the modules beside this one.
"""

from __future__ import annotations

from tests.evidence.bar_cases_campaigns import CALLS, DAMAGES, ENVIRONMENT
from tests.evidence.bar_cases_processes import (
    ATTACKS,
    BENCH,
    CALM,
    CHAOS,
    FAIL_OVER,
    KILL_NINE,
    RELAY_PROCESSES,
    ROLLING_RESTART,
)
from tests.evidence.bar_cases_simulated import (
    MODEL,
    MUTATION,
    RECOVERIES,
    RELAY_SCALE,
    SILENT_DEATH,
    SIMULATION,
    ZOO,
)
from tests.evidence.bars import Bars, Passes
from tests.evidence.collect import check_result


def _tests(exit_code: int = 0, **figures: object) -> Passes:
    return lambda: check_result(exit_code, {"tests": 2, "passed": 1, **figures}) == 0


TESTS = Bars(
    ("scenarios", "history-checker", "guarantees"),
    (check_result,),
    {"all passed": _tests(), "no count of tests": lambda: check_result(0, {"rows": []}) == 0},
    {
        "a test failed": _tests(1),
        "no test was found": _tests(5, tests=0, passed=0),
        "every test was skipped": _tests(passed=0),
        "the figures are unreadable": lambda: check_result(0, {"unreadable": "no JSON"}) == 0,
    },
)

ALL = (
    SIMULATION, RECOVERIES, MODEL, ZOO, MUTATION, CHAOS, FAIL_OVER, CALM, KILL_NINE,
    ROLLING_RESTART, ATTACKS, RELAY_PROCESSES, RELAY_SCALE, SILENT_DEATH, TESTS, BENCH, CALLS,
    DAMAGES, ENVIRONMENT,
)  # fmt: skip

"""A run counts by what clients were answered: deliveries to watchers do not make up for it."""

from __future__ import annotations

import pytest

from quorate.history.check import Report
from tests.chaos.run import LONG_FAULTS_MIN, LONG_OPERATIONS_MIN, Result
from tests.evidence.lanes import BY_NAME


def of(faults: int, answered: int) -> Result:
    report = Report("us", operations=10 * answered, answered=answered, handed=1_000_000)
    return Result(1, 60.0, {"SIGKILL": faults - 1, "disk full": 1}, report)


@pytest.mark.parametrize(
    ("result", "found"),
    [
        (of(300, 500_000), []),
        (of(299, 500_000), ["299 faults, at least 300 are needed"]),
        (
            of(300, 499_999),
            ["499,999 answered operations of clients, at least 500,000 are needed"],
        ),
    ],
)
def test_only_faults_and_answered_operations_count(result: Result, found: list[str]) -> None:
    assert found == result.shortfalls(
        faults_min=LONG_FAULTS_MIN, operations_min=LONG_OPERATIONS_MIN
    )


def test_the_half_hour_of_the_evidence_is_held_to_them() -> None:
    assert "--faults-min 300 --operations-min 500000" in BY_NAME["chaos"].command("full")

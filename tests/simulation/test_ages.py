"""The check of reported freshness can fail, and allows for slow clocks."""

from __future__ import annotations

import pytest

from quorum.core.contract.freshness import Freshness
from simulation.ages import Ages
from simulation.invariants.violation import Violation


def check(*, age_ms: int, end_offset: int) -> None:
    """Ten seconds after offset 7 was acknowledged, at 50 s of the node's clock."""
    ages = Ages()
    ages.acknowledged(1_000_000, 5)
    ages.acknowledged(2_000_000, 7)
    ages.check(1, Freshness(50_000 - age_ms, end_offset), now_ms=50_000, now_us=12_000_000)


def passes(age_ms: int, end_offset: int) -> bool:
    try:
        check(age_ms=age_ms, end_offset=end_offset)
    except Violation:
        return False
    return True


@pytest.mark.parametrize(
    ("age_ms", "least"), [(0, 7), (100, 7), (4_000, 7), (9_200, 5), (9_999, 0)]
)
def test_the_reported_age_must_not_be_too_low(age_ms: int, least: int) -> None:
    """Any end passes that covers what was certainly acknowledged before that time."""
    assert [each for each in range(10) if passes(age_ms, each)] == list(range(least, 10))


@pytest.mark.parametrize(("age_ms", "end_offset"), [(0, 6), (4_000, 5), (8_900, 5)])
def test_a_replica_that_claims_too_much_is_found(age_ms: int, end_offset: int) -> None:
    with pytest.raises(Violation, match="stated-age"):
        check(age_ms=age_ms, end_offset=end_offset)


def test_a_replica_that_reports_no_age_is_not_checked() -> None:
    """It passes although more was acknowledged; with a reported age, the same end does not."""
    ages = Ages()
    ages.acknowledged(1_000_000, 5)
    ages.check(1, Freshness(-1, 2), now_ms=5, now_us=9_000_000)
    with pytest.raises(Violation, match="stated-age"):
        ages.check(1, Freshness(5, 2), now_ms=5, now_us=9_000_000)

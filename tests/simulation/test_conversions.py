"""Conversions are shared by all watchers and kept for a while, not for the whole run."""

from __future__ import annotations

from simulation.conversions import KEPT_MAX, Conversions
from tests.support.stub_cluster import batch_of


def test_equal_bytes_are_converted_once() -> None:
    known = Conversions()
    assert known.of(batch_of(0, 1)) is known.of(batch_of(0, 1))


def test_the_oldest_of_too_many_is_dropped_and_worked_out_again() -> None:
    known = Conversions()
    first, second, *_, last = published = [
        known.of(batch_of(offset, 1)) for offset in range(KEPT_MAX + 1)
    ]
    assert len(published) == KEPT_MAX + 1
    assert known.of(batch_of(1, 1)) is second
    assert known.of(batch_of(KEPT_MAX, 1)) is last
    again = known.of(batch_of(0, 1))
    assert again is not first
    assert again == first


def test_a_long_run_keeps_no_more_than_the_last() -> None:
    known = Conversions()
    for offset in range(3 * KEPT_MAX):
        known.of(batch_of(offset, 1))
        assert len(known._known) <= KEPT_MAX

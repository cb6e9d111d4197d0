"""Sequence numbers evaluated but not used: distinguished, bounded, forgotten."""

from __future__ import annotations

import pytest

from quorate.controller import unused_numbers
from quorate.controller.unused_numbers import NUMBERS_MAX, UnusedNumbers
from statemachine.producers import SequenceClaim
from statemachine.sections.producers import PRODUCER_WINDOW


def test_numbers_belong_to_a_producer_and_an_epoch():
    numbers = UnusedNumbers()
    numbers.add(SequenceClaim(1, 0, 5, 5))
    assert 5 in numbers.of(SequenceClaim(1, 0, 9, 0))
    assert 5 not in numbers.of(SequenceClaim(2, 0, 9, 0))
    assert 5 not in numbers.of(SequenceClaim(1, 1, 9, 0))
    numbers.add(SequenceClaim(1, 1, 0, 0))
    assert 5 not in numbers.of(SequenceClaim(1, 1, 9, 0))
    numbers.clear()
    assert 0 not in numbers.of(SequenceClaim(1, 1, 9, 0))


def test_a_producer_that_is_only_refused_takes_no_more_room():
    numbers = UnusedNumbers()
    for sequence in range(10_000):
        numbers.add(SequenceClaim(1, 0, sequence, max(0, sequence - PRODUCER_WINDOW + 1)))
        known = numbers.of(SequenceClaim(1, 0, sequence, 0))
        assert len(known) <= NUMBERS_MAX
        assert all(n in known for n in range(max(0, sequence - PRODUCER_WINDOW), sequence))


@pytest.mark.interpreted
def test_the_producer_that_came_first_is_forgotten(monkeypatch):
    monkeypatch.setattr(unused_numbers, "PRODUCERS_MAX", 3)
    numbers = UnusedNumbers()
    for producer in range(4):
        numbers.add(SequenceClaim(producer, 0, 0, 0))
    assert [0 in numbers.of(SequenceClaim(each, 0, 1, 0)) for each in range(4)] == [
        False,
        True,
        True,
        True,
    ]

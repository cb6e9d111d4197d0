"""Sequence numbers and windows, as pure bookkeeping."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.client.limits import PRODUCER_WINDOW, SEQUENCE_MAX
from quorate.client.producer_sessions import ProducerSession, ProducerSessions
from statemachine.sections import producers


def test_the_window_is_the_state_machines():
    assert producers.PRODUCER_WINDOW == PRODUCER_WINDOW


def test_numbers_rise_from_zero_and_the_window_counts_from_the_oldest_open():
    producer_session: ProducerSession[str] = ProducerSession(7, 0, window=3)
    assert [producer_session.admit(c) for c in "abc"] == [0, 1, 2]
    assert not producer_session.has_room
    producer_session.settle(1)
    assert not producer_session.has_room
    producer_session.settle(0)
    assert (producer_session.oldest_open, producer_session.has_room) == (2, True)
    assert [producer_session.admit("d"), producer_session.admit("e")] == [3, 4]
    assert not producer_session.has_room


def test_a_producer_session_ends_with_its_numbers_and_when_it_is_retired():
    producer_session: ProducerSession[str] = ProducerSession(7, 0)
    producer_session.next_sequence = SEQUENCE_MAX
    assert producer_session.admit("last") == SEQUENCE_MAX
    assert not producer_session.has_room
    other: ProducerSession[str] = ProducerSession(8, 0)
    other.is_retired = True
    assert not other.has_room


@pytest.mark.parametrize(
    ("waiting", "have", "opening", "wanted"),
    [(1, 0, 0, 1), (32, 0, 0, 1), (33, 0, 0, 2), (64, 0, 1, 1), (10, 0, 1, 0), (1000, 3, 0, 1)],
)
def test_as_many_producer_sessions_are_wanted_as_waiting_commands_fill(
    waiting, have, opening, wanted
):
    producer_sessions: ProducerSessions[str] = ProducerSessions(producer_sessions_max=4)
    for n in range(have):
        producer_sessions.add(ProducerSession(n, 0))
    producer_sessions.opening = opening
    assert producer_sessions.wanted(waiting, 32) == wanted


def test_spent_producer_sessions_make_room_for_new_ones():
    producer_sessions: ProducerSessions[str] = ProducerSessions(producer_sessions_max=1)
    producer_session: ProducerSession[str] = ProducerSession(1, 0)
    producer_sessions.add(producer_session)
    assert producer_sessions.wanted(1, 32) == 0
    producer_session.admit("open")
    producer_sessions.retire(producer_session)
    assert producer_sessions.with_room() is None
    assert producer_sessions.wanted(1, 32) == 0
    producer_session.settle(0)
    assert producer_sessions.wanted(1, 32) == 1


@given(st.lists(st.integers(0, 40)))
def test_no_number_is_ever_a_window_above_the_oldest_open(settled):
    producer_session: ProducerSession[int] = ProducerSession(1, 0, window=8)
    for sequence in settled:
        if producer_session.has_room:
            number = producer_session.admit(0)
            assert number < producer_session.oldest_open + 8
        producer_session.settle(sequence)
        assert all(producer_session.oldest_open <= each for each in producer_session.open)

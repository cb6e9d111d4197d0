"""Sequence numbers and windows, as pure bookkeeping."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.client.lanes import Lane, Lanes
from quorate.client.limits import PRODUCER_WINDOW, SEQUENCE_MAX
from statemachine.sections import producers


def test_the_window_is_the_state_machines():
    assert producers.PRODUCER_WINDOW == PRODUCER_WINDOW


def test_numbers_rise_from_zero_and_the_window_counts_from_the_oldest_open():
    lane: Lane[str] = Lane(7, 0, window=3)
    assert [lane.admit(c) for c in "abc"] == [0, 1, 2]
    assert not lane.has_room
    lane.settle(1)
    assert not lane.has_room
    lane.settle(0)
    assert (lane.oldest_open, lane.has_room) == (2, True)
    assert [lane.admit("d"), lane.admit("e")] == [3, 4]
    assert not lane.has_room


def test_a_lane_ends_with_its_numbers_and_when_it_is_retired():
    lane: Lane[str] = Lane(7, 0)
    lane.next_sequence = SEQUENCE_MAX
    assert lane.admit("last") == SEQUENCE_MAX
    assert not lane.has_room
    other: Lane[str] = Lane(8, 0)
    other.is_retired = True
    assert not other.has_room


@pytest.mark.parametrize(
    ("waiting", "have", "opening", "wanted"),
    [(1, 0, 0, 1), (32, 0, 0, 1), (33, 0, 0, 2), (64, 0, 1, 1), (10, 0, 1, 0), (1000, 3, 0, 1)],
)
def test_as_many_lanes_are_wanted_as_waiting_commands_fill(waiting, have, opening, wanted):
    lanes: Lanes[str] = Lanes(lanes_max=4)
    for n in range(have):
        lanes.add(Lane(n, 0))
    lanes.opening = opening
    assert lanes.wanted(waiting, 32) == wanted


def test_spent_lanes_make_room_for_new_ones():
    lanes: Lanes[str] = Lanes(lanes_max=1)
    lane: Lane[str] = Lane(1, 0)
    lanes.add(lane)
    assert lanes.wanted(1, 32) == 0
    lane.admit("open")
    lanes.retire(lane)
    assert lanes.with_room() is None
    assert lanes.wanted(1, 32) == 0
    lane.settle(0)
    assert lanes.wanted(1, 32) == 1


@given(st.lists(st.integers(0, 40)))
def test_no_number_is_ever_a_window_above_the_oldest_open(settled):
    lane: Lane[int] = Lane(1, 0, window=8)
    for sequence in settled:
        if lane.has_room:
            number = lane.admit(0)
            assert number < lane.oldest_open + 8
        lane.settle(sequence)
        assert all(lane.oldest_open <= each for each in lane.open)

"""The epoch history against a plain list of record epochs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorum.core.positions.epoch_history import EpochHistory
from quorum.errors import InvariantViolation
from quorum.types import EpochStart, OffsetAndEpoch

LOGS = st.lists(st.integers(0, 2), max_size=25).map(
    lambda steps: [1 + sum(steps[: index + 1]) for index in range(len(steps))]
)


def history_of(log: list[int], start: int = 0) -> EpochHistory:
    entries = [
        EpochStart(epoch, offset)
        for offset, epoch in enumerate(log)
        if offset == 0 or log[offset - 1] != epoch
    ]
    base = OffsetAndEpoch(start, log[start - 1] if start else 0)
    return EpochHistory(base, entries, len(log))


def brute_force(log: list[int], start: int, requested: int) -> OffsetAndEpoch | None:
    """279.1 read literally: the largest known epoch not above the requested, and its end."""
    known = range(max(start - 1, 0), len(log))
    fitting = [log[offset] for offset in known if log[offset] <= requested]
    if not fitting:
        return None
    epoch = max(fitting)
    return OffsetAndEpoch(max(o for o in known if log[o] == epoch) + 1, epoch)


@given(LOGS, st.integers(0, 30), st.integers(0, 60))
@settings(max_examples=400, deadline=None)
def test_lookup_agrees_with_the_records(log: list[int], cut: int, requested: int) -> None:
    """Goal: 279.1 on whole and trimmed logs. Method: compare with a scan of the records."""
    start = min(cut, len(log))
    history = history_of(log, start)
    assert history.end_offset_for_epoch(requested, len(log)) == brute_force(log, start, requested)


@given(LOGS, st.integers(0, 30), st.integers(0, 30))
@settings(max_examples=400, deadline=None)
def test_cutting_both_ends_equals_a_history_built_from_what_is_left(
    log: list[int], first: int, second: int
) -> None:
    """Goal: 279.5, the history is cut with the log. Method: cut, and build anew; compare."""
    end = min(max(first, second), len(log))
    start = min(first, second, end)
    history = history_of(log)
    history.truncate_to(end)
    if start:
        history.advance_start(OffsetAndEpoch(start, log[start - 1]), end)
    rebuilt = history_of(log[:end], start)
    assert history.entries == rebuilt.entries
    assert history.latest == (log[end - 1] if end else 0)
    for offset in range(max(start, 1), end + 1):
        assert history.epoch_before(offset) == log[offset - 1]


def test_the_record_before_a_trimmed_start_names_a_real_epoch() -> None:
    """Goal: the oldest snapshot's id is a possible answer. Method: ask for its epoch."""
    history = EpochHistory(OffsetAndEpoch(10, 3), [EpochStart(6, 10)], 20)
    assert history.end_offset_for_epoch(3, 20) == OffsetAndEpoch(10, 3)
    assert history.end_offset_for_epoch(5, 20) == OffsetAndEpoch(10, 3)
    assert history.end_offset_for_epoch(6, 20) == OffsetAndEpoch(20, 6)
    assert history.end_offset_for_epoch(2, 20) is None


def test_an_epoch_that_does_not_rise_is_our_own_mistake() -> None:
    """Goal: invariant 1. Method: assign an older epoch, and a newer one at an old offset."""
    history = EpochHistory(OffsetAndEpoch(0, 0), [EpochStart(2, 0)], 5)
    with pytest.raises(InvariantViolation):
        history.assign(1, 5)
    with pytest.raises(InvariantViolation):
        history.assign(3, 0)


def test_the_latest_epoch_begins_once() -> None:
    """Goal: a batch may repeat its epoch. Method: assign it again, at its start and later."""
    history = EpochHistory(OffsetAndEpoch(0, 0), [EpochStart(2, 0)], 5)
    for offset in (0, 3):
        history.assign(2, offset)
    assert history.entries == (EpochStart(2, 0),)

"""The local log as positions: how it grows, is cut, trimmed and replaced, and what is flushed."""

from __future__ import annotations

import pytest

from quorum.core.positions.epoch_history import EpochHistory
from quorum.core.positions.log_view import LogView
from quorum.errors import InvariantViolation
from quorum.types import LOG_BEGINNING, EpochStart, OffsetAndEpoch


def log_to(end: int, *, start: OffsetAndEpoch = LOG_BEGINNING) -> LogView:
    """A durable log of epoch 2 that ends at ``end``."""
    return LogView(start, OffsetAndEpoch(end, 2), (EpochStart(2, start.offset),))


def test_an_append_grows_the_log_and_is_flushed_when_its_ticket_is_durable() -> None:
    log = log_to(4)
    assert (log.end, log.flushed_end, log.ticket, log.cuts) == (OffsetAndEpoch(4, 2), 4, 0, 0)
    log.append(6, (EpochStart(3, 5),), ticket=11)
    log.append(9, (), ticket=12)
    assert (log.end, log.flushed_end, log.ticket) == (OffsetAndEpoch(9, 3), 4, 12)
    assert not log.mark_durable(10)
    assert log.flushed_end == 4
    assert log.mark_durable(11)
    assert log.flushed_end == 6
    assert not log.mark_durable(11), "known already"
    assert log.mark_durable(12)
    assert log.flushed_end == 9


@pytest.mark.parametrize("end", [3, 4])
def test_an_append_that_does_not_grow_the_log_is_our_own_mistake(end: int) -> None:
    with pytest.raises(InvariantViolation):
        log_to(4).append(end, (), ticket=1)


def test_what_is_cut_is_not_flushed_and_neither_is_what_was_on_its_way() -> None:
    """Goal: no acknowledgement of records that were taken back. Method: cut below what is flushed,
    and between two appends that the disk has yet to take."""
    log = log_to(4)
    log.append(6, (EpochStart(3, 4),), ticket=1)
    log.append(8, (EpochStart(4, 6),), ticket=2)
    log.truncate_to(5, ticket=3)
    assert (log.end, log.ticket, log.cuts) == (OffsetAndEpoch(5, 3), 3, 1)
    assert log.epochs.entries == (EpochStart(2, 0), EpochStart(3, 4))
    assert log.mark_durable(2)
    assert log.flushed_end == 5
    log.truncate_to(2, ticket=4)
    assert (log.end, log.flushed_end, log.cuts) == (OffsetAndEpoch(2, 2), 2, 2)
    log.append(3, (), ticket=5)
    assert not log.mark_durable(4)
    assert log.mark_durable(5)
    assert log.flushed_end == 3


def test_a_cut_follows_an_append_of_the_same_length_on_its_way() -> None:
    """The cut itself is a write: what is flushed when it is durable ends at the cut."""
    log = log_to(4)
    log.append(9, (), ticket=1)
    log.truncate_to(6, ticket=2)
    log.append(7, (), ticket=3)
    assert log.mark_durable(2)
    assert log.flushed_end == 6
    assert log.mark_durable(3)
    assert log.flushed_end == 7


@pytest.mark.parametrize("position", [2, 30])
def test_a_snapshot_takes_the_place_of_the_whole_log(position: int) -> None:
    """Nothing beyond it is flushed before it is durable, and nothing that was on its way counts."""
    log = log_to(4)
    log.append(9, (), ticket=1)
    snapshot = OffsetAndEpoch(position, 7)
    log.replace_with(snapshot, ticket=2)
    assert (log.start, log.end, log.ticket, log.cuts) == (snapshot, snapshot, 2, 1)
    assert log.epochs.is_empty
    assert log.end_offset_for_epoch(7) == snapshot
    assert log.flushed_end == min(4, position)
    assert not log.mark_durable(1)
    assert log.mark_durable(2) == (position > 4)
    assert log.flushed_end == position


def test_the_log_start_rises_within_the_log() -> None:
    log = log_to(9)
    log.advance_start(OffsetAndEpoch(4, 2))
    log.advance_start(OffsetAndEpoch(4, 2))
    assert (log.start, log.epochs.entries) == (OffsetAndEpoch(4, 2), (EpochStart(2, 4),))
    for beyond in (3, 10):
        with pytest.raises(InvariantViolation):
            log.advance_start(OffsetAndEpoch(beyond, 2))
    assert log.start == OffsetAndEpoch(4, 2)


def test_a_log_trimmed_to_its_end_goes_on_in_its_epoch_until_another_begins() -> None:
    """Method: one append of both epochs; and one of the later epoch alone."""
    log = log_to(9)
    log.advance_start(OffsetAndEpoch(9, 2))
    assert log.epochs.is_empty
    log.append(12, (EpochStart(5, 11),), ticket=1)
    assert log.epochs.entries == (EpochStart(2, 9), EpochStart(5, 11))
    log = log_to(9)
    log.advance_start(OffsetAndEpoch(9, 2))
    log.append(12, (EpochStart(5, 9),), ticket=1)
    assert log.epochs.entries == (EpochStart(5, 9),)


def test_a_history_knows_no_epoch_above_the_end_of_the_log() -> None:
    """An index may have been written of records that were not."""
    entries = (EpochStart(1, 0), EpochStart(2, 4), EpochStart(3, 6))
    history = EpochHistory(LOG_BEGINNING, entries, 6)
    assert history.entries == entries[:2]
    assert (history.latest, history.latest_start) == (2, 4)


def test_an_epoch_that_covers_the_log_start_begins_there() -> None:
    entries = (EpochStart(1, 0), EpochStart(2, 4), EpochStart(3, 6))
    history = EpochHistory(LOG_BEGINNING, entries, 8)
    history.advance_start(OffsetAndEpoch(5, 2), 8)
    assert history.entries == (EpochStart(2, 5), EpochStart(3, 6))
    history.advance_start(OffsetAndEpoch(8, 3), 8)
    assert history.is_empty
    assert (history.latest, history.latest_start) == (3, 8)
    assert EpochHistory(OffsetAndEpoch(2, 1), entries[1:], 8).entries == entries[1:]

"""Which of the three answers a Fetch position gets."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorum.core.following.fetching import truncation_point
from quorum.core.positions.fetch_classification import (
    Diverging,
    NeedsSnapshot,
    Serve,
    classify_fetch,
)
from quorum.core.positions.log_view import LogView
from quorum.types import LOG_BEGINNING, EpochStart, OffsetAndEpoch
from tests.support.core_disk import disk_with

SNAPSHOT = OffsetAndEpoch(30, 4)


def view(log: str, start: OffsetAndEpoch = LOG_BEGINNING) -> LogView:
    disk = disk_with(log, start=start)
    return LogView(disk.start, disk.end, disk.epochs)


TRIMMED = view("4:a 4:b 6:c", OffsetAndEpoch(20, 3))


@pytest.mark.parametrize(
    ("offset", "epoch", "expected"),
    [
        (0, 0, NeedsSnapshot(SNAPSHOT)),
        (19, 3, NeedsSnapshot(SNAPSHOT)),
        (20, 3, Serve()),
        (20, 2, NeedsSnapshot(SNAPSHOT)),
        (20, 4, NeedsSnapshot(SNAPSHOT)),
        (21, 2, NeedsSnapshot(SNAPSHOT)),
        (21, 3, Diverging(OffsetAndEpoch(20, 3))),
        (21, 4, Serve()),
        (22, 4, Serve()),
        (23, 4, Diverging(OffsetAndEpoch(22, 4))),
        (23, 5, Diverging(OffsetAndEpoch(22, 4))),
        (23, 6, Serve()),
        (24, 6, Diverging(OffsetAndEpoch(23, 6))),
        (24, 7, Diverging(OffsetAndEpoch(23, 6))),
    ],
)
def test_every_position_against_a_trimmed_log(offset: int, epoch: int, expected: object) -> None:
    """Goal: 630.8 and 279.7 at every boundary of a log starting at (20, 3)."""
    assert classify_fetch(TRIMMED, SNAPSHOT, offset, epoch) == expected


def test_an_empty_replica_is_sent_the_snapshot_even_if_the_log_still_begins_at_zero() -> None:
    """Goal: catching up from a checkpoint. Method: offset 0 with and without a snapshot."""
    whole = view("1:a 1:b")
    assert classify_fetch(whole, OffsetAndEpoch(2, 1), 0, 0) == NeedsSnapshot(OffsetAndEpoch(2, 1))
    assert classify_fetch(whole, None, 0, 0) == Serve()


@pytest.mark.parametrize("epoch", [0, 1, 2, 3])
def test_an_empty_replica_is_served_from_the_start_for_any_epoch(
    epoch: int,
) -> None:
    whole = view("2:a 2:b")
    assert classify_fetch(whole, None, 0, epoch) == Serve()
    assert classify_fetch(whole, SNAPSHOT, 0, epoch) == NeedsSnapshot(SNAPSHOT)


def test_a_trimmed_log_without_a_snapshot_needs_an_unknown_one() -> None:
    """Goal: a lost checkpoint is no crash. Method: positions below the log start."""
    for offset in (0, 5, 19):
        assert classify_fetch(TRIMMED, None, offset, 1) == NeedsSnapshot(None)


def test_a_log_trimmed_by_one_record_serves_only_the_epoch_of_that_record() -> None:
    trimmed = view("2:a 2:b", OffsetAndEpoch(1, 1))
    assert classify_fetch(trimmed, SNAPSHOT, 1, 1) == Serve()
    assert classify_fetch(trimmed, SNAPSHOT, 1, 2) == NeedsSnapshot(SNAPSHOT)
    assert classify_fetch(trimmed, SNAPSHOT, 2, 0) == NeedsSnapshot(SNAPSHOT)


@st.composite
def two_logs(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Two logs as elections can make them: a common part, then epochs of their own."""
    common = sorted(draw(st.lists(st.integers(1, 3), max_size=6)))
    odd = sorted(draw(st.lists(st.sampled_from([5, 7, 9]), max_size=6)))
    even = sorted(draw(st.lists(st.sampled_from([4, 6, 8]), max_size=6)))
    return common + odd, common + even


def log_view(epochs: list[int]) -> LogView:
    entries = [
        EpochStart(epoch, offset)
        for offset, epoch in enumerate(epochs)
        if offset == 0 or epochs[offset - 1] != epoch
    ]
    end = OffsetAndEpoch(len(epochs), epochs[-1] if epochs else 0)
    return LogView(LOG_BEGINNING, end, entries)


@given(two_logs())
@settings(max_examples=500, deadline=None)
def test_rounds_of_divergence_end_at_the_largest_common_prefix(
    logs: tuple[list[int], list[int]],
) -> None:
    """Goal: 279.2 and 279.3. Method: play leader against follower and count the rounds."""
    leader, follower = log_view(logs[0]), log_view(logs[1])
    common = 0
    for ours, theirs in zip(*logs, strict=False):
        if ours != theirs:
            break
        common += 1
    unknown = len(set(logs[1]) - set(logs[0]))
    rounds = 0
    while True:
        answer = classify_fetch(leader, None, follower.end_offset, follower.end_epoch)
        if isinstance(answer, Serve):
            break
        assert isinstance(answer, Diverging)
        rounds += 1
        cut = truncation_point(follower, answer.point)
        assert cut < follower.end_offset
        follower.truncate_to(cut, ticket=rounds)
    assert follower.end_offset == common
    assert rounds <= 1 + unknown
    if unknown <= 1:
        assert rounds <= 1

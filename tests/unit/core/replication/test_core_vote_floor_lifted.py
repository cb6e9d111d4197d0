"""When a vote floor is lifted, and what a ticket does that was reported before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorum.core.contract.events import VoteFloorReached
from quorum.core.replication.durability import lift_vote_floor_at_leaders_end, on_durable
from quorum.core.state.core_state import CoreState
from quorum.types import OffsetAndEpoch
from tests.support.bare_core import EPOCH, LOG_END, NOW_MS, core_of, follower

END = OffsetAndEpoch(LOG_END, EPOCH)


def below_a_floor(
    floor: OffsetAndEpoch, *, start: OffsetAndEpoch | None = None, flushed_end: int = LOG_END
) -> CoreState:
    """Two tickets are on their way to the disk."""
    start = start or OffsetAndEpoch(0, 0)
    core = core_of(follower(), start=start, log_end=max(LOG_END, start.offset))
    core.adopt_election(replace(core.election, vote_floor=floor))
    core.log.flushed_end = flushed_end
    core.disk.next_ticket(NOW_MS)
    core.disk.next_ticket(NOW_MS)
    return core


@pytest.mark.parametrize(
    ("floor", "flushed_end", "is_lifted"),
    [
        (END, LOG_END, True),
        (END, LOG_END - 1, False),
        (replace(END, offset=LOG_END + 1), LOG_END, False),
        (replace(END, epoch=EPOCH + 1), LOG_END, False),
        (OffsetAndEpoch(LOG_END + 9, EPOCH - 1), LOG_END, True),
    ],
)
@pytest.mark.parametrize("is_quarantined", [False, True])
def test_a_floor_is_lifted_where_the_durable_log_reaches_it(
    floor: OffsetAndEpoch, flushed_end: int, is_lifted: bool, is_quarantined: bool
) -> None:
    core = below_a_floor(floor, flushed_end=flushed_end)
    if is_quarantined:
        core.chain.quarantined_log, is_lifted = "a bad batch", False
    on_durable(core, 1)
    assert core.election.vote_floor == (None if is_lifted else floor)
    reached = OffsetAndEpoch(flushed_end, EPOCH)
    assert core.out.events == ([VoteFloorReached(floor, reached)] if is_lifted else [])


@pytest.mark.parametrize(("flushed_end", "is_lifted"), [(49, False), (50, True)])
def test_a_snapshot_that_is_not_durable_yet_does_not_reach_the_floor(
    flushed_end: int, is_lifted: bool
) -> None:
    """Below the start of the log only the old log is on disk, of an earlier epoch."""
    floor = OffsetAndEpoch(45, EPOCH)
    core = below_a_floor(floor, start=OffsetAndEpoch(50, EPOCH), flushed_end=flushed_end)
    on_durable(core, 1)
    assert (core.election.vote_floor is None) == is_lifted


@pytest.mark.parametrize("has_floor", [True, False])
@pytest.mark.parametrize("is_quarantined", [False, True])
@pytest.mark.parametrize("flushed_end", [LOG_END - 1, LOG_END])
def test_at_the_leaders_end_a_floor_of_any_epoch_is_lifted_once_the_log_is_durable(
    has_floor: bool, is_quarantined: bool, flushed_end: int
) -> None:
    floor = OffsetAndEpoch(LOG_END + 9, EPOCH + 9)
    core = below_a_floor(floor, flushed_end=flushed_end)
    if not has_floor:
        core.adopt_election(replace(core.election, vote_floor=None))
    core.chain.quarantined_log = "a bad batch" if is_quarantined else ""
    lift_vote_floor_at_leaders_end(core)
    is_lifted = has_floor and not is_quarantined and flushed_end == LOG_END
    assert core.out.events == ([VoteFloorReached(floor, END)] if is_lifted else [])
    assert core.election.vote_floor == (floor if has_floor and not is_lifted else None)


def test_a_ticket_that_was_reported_before_is_no_progress_of_the_disk() -> None:
    core = below_a_floor(OffsetAndEpoch(LOG_END + 9, EPOCH))
    core.now_ms = NOW_MS + 5
    on_durable(core, 1)
    core.now_ms = NOW_MS + 9
    on_durable(core, 1)
    on_durable(core, 0)
    assert core.disk.watch.since_ms == NOW_MS + 5
    assert core.disk.durable_ticket == 1
    on_durable(core, 2)
    assert core.disk.durable_ticket == 2

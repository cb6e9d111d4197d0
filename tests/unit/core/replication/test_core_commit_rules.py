"""What an append, a commit and the word of the disk change, from a state built by hand."""

from __future__ import annotations

import pytest

from quorum.core.contract.events import (
    RecordsAppended,
)
from quorum.core.contract.output import LeadershipChanged, ReadConfirmed
from quorum.core.replication.commitment import advance_high_watermark, propose
from quorum.core.replication.durability import on_durable, store_high_watermark
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.peer_requests import InFlight, Purpose
from quorum.core.state.pending_change import ChangeKind, PendingChange
from quorum.core.state.roles import Leader
from quorum.core.state.timers import Timer
from quorum.core.state.waiting_reads import ForwardedRead
from tests.support.bare_core import (
    EPOCH,
    LOG_END,
    NOW_MS,
    core_of,
    follower,
    leading,
    progress,
    reported,
)
from tests.support.core_disk import voter


def test_an_append_is_reported() -> None:
    core, _ = leading()
    propose(core, LOG_END + 2, b"payload")
    assert reported(core, RecordsAppended) == [RecordsAppended(LOG_END, LOG_END + 2, EPOCH)]


def durable_at_others(core: CoreState, leader: Leader) -> None:
    leader.remote[2].end_offset = leader.remote[3].end_offset = LOG_END


@pytest.mark.parametrize("is_changing", [True, False])
@pytest.mark.parametrize("counts_itself", [True, False])
def test_after_a_commit_a_change_of_the_voters_is_looked_after(
    is_changing: bool, counts_itself: bool
) -> None:
    core, leader = leading()
    if is_changing:
        leader.change = PendingChange(ChangeKind.ADD, voter(4), None)
    leader.counts_itself = counts_itself
    durable_at_others(core, leader)
    advance_high_watermark(core, leader)
    assert core.high_watermark == LOG_END
    is_due = is_changing or not counts_itself
    assert leader.membership_due_ms == (NOW_MS if is_due else NEVER_MS)


@pytest.mark.parametrize(
    ("counts_itself", "ends", "committed"),
    [(True, (30, 10), 30), (True, (10, 10), 10), (False, (30, 10), 10), (False, (30, 20), 20)],
)
def test_a_leader_that_was_removed_does_not_count_its_own_log(
    counts_itself: bool, ends: tuple[int, int], committed: int
) -> None:
    core, leader = leading()
    leader.counts_itself = counts_itself
    leader.remote[2].end_offset, leader.remote[3].end_offset = ends
    advance_high_watermark(core, leader)
    assert core.high_watermark == committed


@pytest.mark.parametrize(("epoch_start", "is_committed"), [(LOG_END - 1, True), (LOG_END, False)])
def test_the_first_commit_of_its_epoch_lets_a_leader_write_and_confirm_reads(
    epoch_start: int, is_committed: bool
) -> None:
    core, leader = leading()
    leader.epoch_start, leader.can_write = epoch_start, False
    core.forwarded.add(ForwardedRead(5, NOW_MS + 100))
    durable_at_others(core, leader)
    advance_high_watermark(core, leader)
    assert leader.can_write == is_committed
    assert len(progress(core, LeadershipChanged)) == is_committed
    assert len(core.forwarded) == (not is_committed)
    assert len(leader.reads) == is_committed
    assert progress(core, ReadConfirmed) == []


# The disk.


@pytest.mark.parametrize("is_flushed", [True, False])
def test_only_a_higher_durable_end_plans_to_store_the_high_watermark(is_flushed: bool) -> None:
    core, leader = leading()
    ticket = core.disk.next_ticket(NOW_MS)
    if is_flushed:
        core.log.append(LOG_END + 1, (), ticket)
    durable_at_others(core, leader)
    on_durable(core, ticket)
    due_ms = NOW_MS + core.config.high_watermark_store_ms
    assert core.disk.watermark_store_due_ms == (due_ms if is_flushed else NEVER_MS)
    assert core.high_watermark == (LOG_END if is_flushed else 0)


@pytest.mark.parametrize(
    ("needed", "due_ms", "starts"),
    [(1, NEVER_MS, True), (2, NEVER_MS, False), (1, NOW_MS + 7, False)],
)
def test_the_time_of_a_request_begins_when_it_leaves(
    needed: int, due_ms: int, starts: bool
) -> None:
    core = core_of(follower())
    tickets = [core.disk.next_ticket(NOW_MS) for _ in range(2)]
    flight = InFlight(2, Purpose.FETCH, due_ms, 5, ticket=needed)
    core.requests.begin_flight(flight)
    on_durable(core, tickets[0])
    assert flight.due_ms == (NOW_MS + core.config.request_timeout_ms if starts else due_ms)


def test_to_store_the_high_watermark_is_counted_as_its_timer() -> None:
    core = core_of(follower())
    core.disk.watermark_store_due_ms = NOW_MS
    store_high_watermark(core)
    assert core.timers_fired[Timer.WATERMARK_STORE] == 1
    assert core.disk.watermark_store_due_ms == NEVER_MS

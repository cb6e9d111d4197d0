"""For which observers in a later epoch a leader moves leadership, and when: case by case."""

from __future__ import annotations

from typing import Any

import pytest

from quorum.core.contract.events import RoleChanged, TransferStarted
from quorum.core.contract.reasons import RoleChangeReason
from quorum.core.leadership.epoch_catch_up import (
    EPOCHS_MAX,
    WAIT_ELECTIONS,
    AheadView,
    ahead_views,
    is_brought_back,
    poll,
)
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.peer_requests import PeerRequest, Purpose
from quorum.core.state.pending_change import ChangeKind, PendingChange
from quorum.core.state.replica_progress import Ahead
from quorum.core.state.roles import Leader, Transfer
from quorum.types import Voter
from tests.support.bare_core import EPOCH, LOG_END, core_of, follower, leading, reported
from tests.support.core_disk import key

NOW_MS = 100_000
WAIT_MS = WAIT_ELECTIONS * 1_000
SILENT_MS = 10_000


def ahead(number: int = 9, **fields: Any) -> Ahead:
    """An observer that has waited just long enough."""
    given = {
        "epoch": EPOCH + 1,
        "since_ms": NOW_MS - WAIT_MS,
        "last_ms": NOW_MS,
        "is_proven": True,
        **fields,
    }
    return Ahead(key(number), **given)


def built(*waiting: Ahead, voters: tuple[int, ...] = (1, 2, 3)) -> tuple[CoreState, Leader]:
    """Node 1 leads; every other voter could take over."""
    core, role = leading(voters, high_watermark=LOG_END)
    core.now_ms = NOW_MS
    for each in role.remote.values():
        each.end_offset, each.last_fetch_ms, each.last_caught_up_ms = LOG_END, NOW_MS, NOW_MS
    role.ahead = {each.key: each for each in waiting}
    return core, role


def moved_for(core: CoreState) -> list[int]:
    return [each.observer.id for each in reported(core, TransferStarted) if each.observer]


@pytest.mark.parametrize(
    ("is_proven", "epoch", "expected"),
    [
        (True, EPOCH + 1, True),
        (True, EPOCH + EPOCHS_MAX, True),
        (True, EPOCH + EPOCHS_MAX + 1, False),
        (False, EPOCH + 1, False),
    ],
)
def test_for_whom_leadership_moves(is_proven: bool, epoch: int, expected: bool) -> None:
    observer = ahead(is_proven=is_proven, epoch=epoch)
    assert is_brought_back(observer, EPOCH) is expected
    core, role = built(observer)
    assert ahead_views(core) == (AheadView(key(9), epoch, expected),)
    poll(core, role)
    assert moved_for(core) == ([9] if expected else [])


def test_only_a_leader_shows_observers_and_in_order() -> None:
    core, _ = built(ahead(9), ahead(5), ahead(7))
    assert [each.key.id for each in ahead_views(core)] == [5, 7, 9]
    assert ahead_views(core_of(follower())) == ()


@pytest.mark.parametrize(
    ("since_ms", "due_ms", "moves"),
    [
        (NOW_MS - WAIT_MS, NOW_MS, True),
        (NOW_MS - WAIT_MS + 1, NOW_MS, False),
        (NOW_MS - WAIT_MS, NOW_MS + 1, False),
    ],
)
def test_leadership_moves_after_the_wait_and_once_in_it(
    since_ms: int, due_ms: int, moves: bool
) -> None:
    core, role = built(ahead(since_ms=since_ms))
    role.catch_up_due_ms = due_ms
    poll(core, role)
    assert moved_for(core) == ([9] if moves else [])
    assert role.catch_up_due_ms == (NOW_MS + WAIT_MS if moves else due_ms)


def test_leadership_moves_for_one_at_a_time() -> None:
    core, role = built(ahead(5, is_proven=False), ahead(7), ahead(9))
    poll(core, role)
    assert moved_for(core) == [7]


def test_a_change_of_the_voters_goes_first() -> None:
    core, role = built(ahead())
    role.change = PendingChange(ChangeKind.REMOVE, Voter(key(3)), None)
    poll(core, role)
    assert (moved_for(core), role.catch_up_due_ms) == ([], 0)


def test_a_transfer_that_is_under_way_is_not_replaced() -> None:
    core, role = built(ahead())
    transfer = Transfer(key(2), 7, NEVER_MS, PeerRequest(2, Purpose.TRANSFER))
    role.transfer = transfer
    poll(core, role)
    assert role.transfer is transfer
    assert (moved_for(core), role.catch_up_due_ms) == ([], 0)


def test_an_observer_that_asks_no_more_is_forgotten() -> None:
    core, role = built(ahead(5, last_ms=NOW_MS - SILENT_MS - 1), ahead(9, since_ms=NOW_MS))
    poll(core, role)
    assert list(role.ahead) == [key(9)]
    assert moved_for(core) == []


@pytest.mark.parametrize("waits", [True, False])
def test_a_lone_voter_resigns_to_lead_the_next_epoch(waits: bool) -> None:
    core, role = built(*([ahead()] if waits else []), voters=(1,))
    poll(core, role)
    reasons = [each.reason for each in reported(core, RoleChanged)]
    assert reasons == ([RoleChangeReason.OBSERVER_STRANDED] if waits else [])
    assert moved_for(core) == []

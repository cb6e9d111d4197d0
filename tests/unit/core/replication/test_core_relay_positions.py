"""Where a relay sends an observer whose log is none of a committed prefix, and when it wakes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorum.core.messages.fetch_messages import (
    Diverging,
    FetchDecision,
    FetchRequest,
    FetchResponse,
    ReceivedFetchRequest,
    Subtree,
)
from quorum.core.positions.fetch_classification import SERVE, Classification, NeedsSnapshot
from quorum.core.positions.log_view import LogView
from quorum.core.replication.relay_serving import classify_committed, on_fetch, relay_deadline
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS, HeldFetch
from quorum.core.state.upstream import RelayPlan
from quorum.errors import ErrorCode
from quorum.types import LOG_BEGINNING, EpochStart, OffsetAndEpoch
from tests.support.bare_core import CLUSTER, EPOCH, NOW_MS, core_of, follower, sent
from tests.support.core_disk import key

COMMITTED = 35
REQUEST = FetchRequest(7, CLUSTER, key(8), EPOCH, 20, EPOCH)


def relay() -> CoreState:
    """Epoch 2 begins at 0, epoch 3 at 10 and epoch 4 at 15; the log ends at 40."""
    core = core_of(
        follower(has_fetched=True),
        voters=(2, 3),
        relays=RelayPlan(serves=True),
        high_watermark=COMMITTED,
    )
    epochs = (EpochStart(2, 0), EpochStart(3, 10), EpochStart(4, 15))
    core.log = LogView(LOG_BEGINNING, OffsetAndEpoch(40, EPOCH), epochs)
    core.following.upstream.confirm((), EPOCH, NOW_MS)
    return core


def diverging(offset: int, epoch: int) -> Diverging:
    return Diverging(OffsetAndEpoch(offset, epoch))


@pytest.mark.parametrize(
    ("offset", "epoch", "expected"),
    [
        (0, 0, SERVE),
        (0, 3, SERVE),
        (1, 2, SERVE),
        (10, 2, SERVE),
        (11, 3, SERVE),
        (20, 4, SERVE),
        (COMMITTED, 4, SERVE),
        # The record before lies in another epoch here.
        (1, 4, diverging(15, 3)),
        (5, 3, diverging(10, 2)),
        (12, 4, diverging(15, 3)),
        # By its epoch alone: it is longer than that epoch here, or the epoch is unknown.
        (12, 2, diverging(10, 2)),
        (16, 3, diverging(15, 3)),
        (20, 1, diverging(0, 0)),
    ],
)
def test_an_observer_is_served_from_a_record_that_it_has_in_the_same_epoch(
    offset: int, epoch: int, expected: Classification
) -> None:
    assert classify_committed(relay(), offset, epoch) == expected


@pytest.mark.parametrize(
    ("committed", "expected"), [(15, diverging(15, 3)), (14, diverging(14, 3))]
)
def test_no_point_of_divergence_lies_above_what_is_committed(
    committed: int, expected: Diverging
) -> None:
    core = relay()
    core.high_watermark = committed
    assert classify_committed(core, 14, 4) == expected


def test_an_observer_of_no_records_is_sent_to_the_newest_checkpoint() -> None:
    core = relay()
    snapshot_id = OffsetAndEpoch(20, EPOCH)
    core.snapshots.add(snapshot_id, 500, now_ms=0)
    assert classify_committed(core, 0, 0) == NeedsSnapshot(snapshot_id)


@pytest.mark.parametrize(
    ("offset", "epoch", "answer"),
    [
        (20, EPOCH, ErrorCode.DIGEST_MISMATCH),
        # Without a common position there is nothing to compare.
        (12, EPOCH, diverging(15, 3)),
        (COMMITTED + 1, EPOCH, ErrorCode.OFFSET_NOT_AVAILABLE),
    ],
)
def test_digests_are_compared_only_at_a_position_that_both_have(
    offset: int, epoch: int, answer: ErrorCode | Diverging
) -> None:
    core = relay()
    assert core.relay is not None
    request = replace(REQUEST, fetch_offset=offset, last_fetched_epoch=epoch, digest=b"theirs")
    on_fetch(core, core.relay, 8, ReceivedFetchRequest(request, is_proven=True, own_digest=b"own"))
    (found,) = sent(core, 8)
    match found:
        case FetchDecision():
            assert found.content == answer
        case FetchResponse():
            assert found.error is answer
        case _:
            pytest.fail(f"unexpected answer {found}")


@pytest.mark.parametrize(
    ("held_until_ms", "has_subtree", "confirmed_ms", "due_ms"),
    [
        (None, False, 0, NEVER_MS),
        (None, True, 0, NOW_MS + 700),
        (NOW_MS + 300, False, NOW_MS, NOW_MS + 300),
        (NOW_MS + 300, True, NOW_MS, NOW_MS + 300),
        (NOW_MS + 900, True, NOW_MS, NOW_MS + 700),
        # It must stop to serve in the millisecond after the leader's last answer is too old.
        (NOW_MS + 900, True, NOW_MS - 900, NOW_MS + 101),
    ],
)
def test_a_relay_wakes_for_what_is_held_and_for_its_upkeep(
    held_until_ms: int | None, has_subtree: bool, confirmed_ms: int, due_ms: int
) -> None:
    core = relay()
    relays = core.relay
    assert relays is not None
    core.config = replace(core.config, relay_age_max_ms=1_000)
    core.following.upstream.confirmed_ms = confirmed_ms
    relays.upkeep_due_ms = NOW_MS + 700
    relays.subtree = Subtree(5, 1) if has_subtree else None
    if held_until_ms is not None:
        relays.held.hold(HeldFetch(8, REQUEST, held_until_ms, is_voter=False))
    assert relay_deadline(core, relays) == due_ms

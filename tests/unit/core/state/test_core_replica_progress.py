"""What a replica's Fetches prove to their receiver, and the log position that it still needs."""

from __future__ import annotations

import pytest

from quorum.core.messages.fetch_messages import Subtree
from quorum.core.state.relay_table import LINKS_MAX, LINKS_REPEAT_MS, Relay
from quorum.core.state.replica_progress import ReplicaProgress
from quorum.types import NodeId
from tests.support.core_disk import key


def replica(
    node_id: NodeId = 2, *, offset: int | None = None, low: int | None = None
) -> ReplicaProgress:
    progress = ReplicaProgress(key(node_id), is_voter=False, live_since_ms=0)
    if offset is not None:
        progress.note_fetch(offset, now_ms=5, leader_end=100)
    if low is not None:
        progress.note_subtree(Subtree(low, 2, ((20, node_id), (21, 20))))
    return progress


def test_caught_up_means_at_the_leaders_end_now_or_where_it_was_at_the_previous_fetch() -> None:
    """KIP-836. Method: behind, behind where it was, exactly there, and at the end."""
    progress = replica()
    progress.note_fetch(5, now_ms=100, leader_end=10)
    assert (progress.last_caught_up_ms, progress.last_fetch_ms) == (-1, 100)
    progress.note_fetch(9, now_ms=200, leader_end=20)
    assert progress.last_caught_up_ms == -1
    progress.note_fetch(20, now_ms=300, leader_end=21)
    assert progress.last_caught_up_ms == 200
    progress.note_fetch(21, now_ms=400, leader_end=21)
    assert progress.last_caught_up_ms == 400
    progress.note_fetch(21, now_ms=500, leader_end=30)
    assert progress.last_caught_up_ms == 400
    assert progress.end_offset == 21


def test_a_fetch_ends_a_download() -> None:
    progress = replica(offset=3)
    progress.download_end = 50
    assert progress.trim_position == 50
    progress.note_fetch(7, now_ms=10, leader_end=100)
    assert progress.trim_position == 7


def test_a_position_that_only_an_unproven_fetch_names_does_not_let_the_log_go() -> None:
    """Before any proof it is all that is known; a lower one keeps more of the log."""
    progress = replica()
    assert progress.trim_position == -1
    progress.note_fetch(40, now_ms=1, leader_end=100, is_proven=False)
    assert (progress.trim_position, progress.proven_end) == (40, -1)
    progress.note_fetch(0, now_ms=2, leader_end=100)
    assert (progress.trim_position, progress.proven_end) == (0, 0)
    progress.note_fetch(60, now_ms=3, leader_end=100, is_proven=False)
    assert (progress.trim_position, progress.end_offset) == (0, 60)
    progress.note_fetch(30, now_ms=4, leader_end=100)
    assert progress.trim_position == 30
    progress.note_fetch(10, now_ms=5, leader_end=100, is_proven=False)
    assert progress.trim_position == 10


def test_a_relay_needs_the_lowest_position_of_its_subtree() -> None:
    assert replica(offset=30, low=12).trim_position == 12
    assert replica(offset=30, low=31).trim_position == 30


def test_routes_that_a_report_leaves_out_are_unchanged() -> None:
    progress = replica(offset=30, low=12)
    progress.note_subtree(Subtree(15, 3))
    assert progress.subtree == Subtree(15, 3, ((20, 2), (21, 20)))
    progress.note_subtree(Subtree(15, 3, ((22, 2),)))
    assert progress.subtree == Subtree(15, 3, ((22, 2),))
    progress.note_subtree(None)
    assert progress.subtree is None
    progress.note_subtree(Subtree(15, 3))
    assert progress.subtree == Subtree(15, 3)


def relay_above(*replicas: ReplicaProgress) -> Relay:
    relay = Relay(7)
    for each in replicas:
        relay.downstream[each.key] = each
    relay.refresh()
    return relay


def test_a_relay_reports_the_lowest_need_of_all_below_it_and_their_routes() -> None:
    relay = relay_above(replica(9, offset=4), replica(8, offset=30, low=12), replica(10))
    assert relay.subtree == Subtree(0, 5, ((8, 7), (9, 7), (10, 7), (20, 8), (21, 20)))
    assert relay_above().subtree is None
    below = replica(8, offset=30, low=12)
    below.note_subtree(Subtree(12, 2, (), is_provisional=True))
    relay = relay_above(replica(9, offset=4), below)
    assert relay.subtree is not None
    assert relay.subtree.is_provisional
    assert relay.subtree.low == 4


def test_a_report_has_a_bounded_number_of_routes_and_counts_all_members() -> None:
    relay = relay_above(*(replica(each, offset=4) for each in range(10, 11 + LINKS_MAX)))
    assert relay.subtree is not None
    assert (len(relay.subtree.links), relay.subtree.members) == (LINKS_MAX, LINKS_MAX + 1)


@pytest.mark.parametrize(("offset", "low"), [(3, 3), (4, 4), (5, 4)])
def test_a_position_below_the_reported_one_is_taken_in_at_once(offset: int, low: int) -> None:
    """A higher one comes with the next count, because a report that is too low is safe."""
    relay = relay_above(replica(9, offset=4))
    other = relay.downstream[key(8)] = replica(8, offset=offset)
    relay.note(other)
    assert relay.subtree is not None
    assert (relay.subtree.low, relay.subtree.members) == (low, 2 if offset < 4 else 1)
    fresh = Relay(7)
    fresh.downstream[key(8)] = replica(8, offset=offset)
    fresh.note(fresh.downstream[key(8)])
    assert fresh.subtree == Subtree(offset, 1, ((8, 7),))


def test_after_a_restart_a_relay_reports_its_whole_log_as_needed_until_all_had_time_to_return() -> (
    None
):
    """Method: without a subtree, with one, and with one that needs even more."""
    for relay, members, low in (
        (Relay(7), 0, 20),
        (relay_above(replica(9, offset=30)), 1, 20),
        (relay_above(replica(9, offset=10)), 1, 10),
    ):
        relay.silent_until_ms = 1_000
        known = relay.subtree
        early = relay.reported(999, 20)
        assert early is not None
        assert (early.low, early.members, early.is_provisional) == (low, members, True)
        assert relay.reported(1_000, 20) == known


def test_routes_are_reported_when_they_are_new_and_now_and_then() -> None:
    """New to this leader as well: another epoch is another leader."""
    relay = relay_above(replica(9, offset=30))
    whole = relay.subtree
    assert whole is not None
    short = Subtree(30, 1)
    assert relay.report(100, 1, 0) == whole
    assert relay.report(101, 1, 0) == short
    assert relay.report(99 + LINKS_REPEAT_MS, 1, 0) == short
    assert relay.report(100 + LINKS_REPEAT_MS, 1, 0) == whole
    assert relay.report(101 + LINKS_REPEAT_MS, 1, 0) == short
    assert relay.report(102 + LINKS_REPEAT_MS, 2, 0) == whole
    assert relay.report(103 + LINKS_REPEAT_MS, 2, 0) == short
    relay.downstream[key(8)] = replica(8, offset=30)
    relay.refresh()
    assert relay.report(104 + LINKS_REPEAT_MS, 2, 0) == Subtree(30, 2, ((8, 7), (9, 7)))
    assert Relay(7).report(0, 1, 0) is None


def test_observers_that_were_silent_for_a_session_are_forgotten() -> None:
    silent, live = replica(8, offset=1), replica(9, offset=2)
    silent.live_since_ms, live.live_since_ms = 99, 100
    relay = relay_above(silent, live)
    assert relay.forget_silent(100)
    assert [*relay.downstream] == [key(9)]
    assert not relay.forget_silent(100)

"""What a leader and a relay keep of a replica's contacts, each rule from a state built by hand."""

from __future__ import annotations

import pytest

from quorum.core.messages.fetch_messages import Subtree
from quorum.core.positions.download import RESTING, Download, SealedSnapshot
from quorum.core.state.peer_requests import PeerRequest, Purpose
from quorum.core.state.relay_table import LINKS_REPEAT_MS, Relay
from quorum.core.state.replica_progress import ReplicaProgress
from quorum.core.state.replica_table import (
    forget_silent_observers,
    note_contact,
    reported_subtree,
    track_observer,
    tree_view,
)
from quorum.core.state.roles import Follower, Role, Transfer, Unattached
from quorum.core.state.timers import Timer
from quorum.core.state.upstream import RelayPlan
from quorum.types import OffsetAndEpoch
from tests.support.bare_core import NOW_MS, core_of, follower, leading
from tests.support.core_disk import key

RELAY = RelayPlan(serves=True)
SNAPSHOT = OffsetAndEpoch(5, 1)


def observer(node_id: int, live_since_ms: int = NOW_MS, offset: int = 9) -> ReplicaProgress:
    progress = ReplicaProgress(key(node_id), is_voter=False, live_since_ms=live_since_ms)
    progress.end_offset = offset
    return progress


@pytest.mark.parametrize(
    ("ages_more_ms", "left"),
    [((), []), ((-1, 0), [5, 6]), ((0, 1), [5]), ((1, 2), [])],
)
def test_an_observer_is_forgotten_after_more_than_a_session_of_silence(
    ages_more_ms: tuple[int, ...], left: list[int]
) -> None:
    core, leader = leading()
    session_ms = core.config.observer_session_ms
    for node_id, more_ms in enumerate(ages_more_ms, start=5):
        leader.observers[key(node_id)] = observer(node_id, NOW_MS - session_ms - more_ms)
    forget_silent_observers(core, leader)
    assert [each.id for each in leader.observers] == left
    fired = len(left) < len(ages_more_ms)
    assert core.timers_fired[Timer.OBSERVER_SESSION] == fired


def test_for_one_too_many_the_longest_silent_observer_goes() -> None:
    core, leader = leading(observers_max=2)
    leader.observers = {
        key(5): observer(5, 30), key(6): observer(6, 20),
    }  # fmt: skip
    assert track_observer(core, leader, key(8)).live_since_ms == NOW_MS
    assert [each.id for each in leader.observers] == [5, 8]


@pytest.mark.parametrize("is_voter", [True, False])
def test_only_a_voters_contact_counts_for_check_quorum(is_voter: bool) -> None:
    core, leader = leading((1, 2, 3, 4, 5))
    progress = observer(2, live_since_ms=0)
    progress.is_voter = is_voter
    note_contact(core, leader, progress)
    assert progress.live_since_ms == NOW_MS
    assert leader.contacted == ({2} if is_voter else set())
    before_ms = leader.check_quorum_deadline_ms
    progress = observer(3)
    progress.is_voter = is_voter
    note_contact(core, leader, progress)
    assert leader.contacted == set()
    due_ms = NOW_MS + core.config.check_quorum_ms
    assert leader.check_quorum_deadline_ms == (due_ms if is_voter else before_ms)


@pytest.mark.parametrize("takes_writes", [True, False])
@pytest.mark.parametrize("is_moving", [True, False])
def test_a_leader_in_a_transfer_takes_no_writes(takes_writes: bool, is_moving: bool) -> None:
    _, leader = leading()
    leader.can_write = takes_writes
    if is_moving:
        leader.transfer = Transfer(key(2), 1, NOW_MS, PeerRequest(2, Purpose.TRANSFER))
    assert leader.takes_writes == (takes_writes and not is_moving)


@pytest.mark.parametrize(
    ("download", "sealed", "is_replacing"),
    [
        (None, None, False),
        (Download(SNAPSHOT, RESTING), None, True),
        (None, SealedSnapshot(SNAPSHOT, (), 1), True),
    ],
)
def test_a_snapshot_may_replace_the_log_until_it_is_installed(
    download: Download | None, sealed: SealedSnapshot | None, is_replacing: bool
) -> None:
    core = core_of(follower())
    core.following.download, core.following.sealed_snapshot = download, sealed
    assert core.following.is_replacing_log == is_replacing


# Relays.


@pytest.mark.parametrize("role", [follower(), Unattached(NOW_MS)])
@pytest.mark.parametrize("is_relay", [True, False])
def test_the_tree_shows_the_route_of_a_follower_and_who_is_below(
    role: Role, is_relay: bool
) -> None:
    core = core_of(role, voters=(2, 3), relays=RelayPlan(serves=is_relay))
    core.following.upstream.path = (key(8),)
    if core.relay is not None:
        core.relay.downstream = {key(6): observer(6, offset=4), key(5): observer(5)}
        core.relay.refresh()
    view = tree_view(core)
    assert view.path == ((key(8),) if isinstance(role, Follower) else ())
    assert [each.key.id for each in view.downstream] == ([5, 6] if is_relay else [])
    assert (view.subtree_low, view.is_low_provisional) == (4 if is_relay else -1, False)


@pytest.mark.parametrize("is_voter", [True, False])
@pytest.mark.parametrize("has_observers", [True, False])
@pytest.mark.parametrize("silent", [True, False])
def test_a_voter_reports_only_observers_that_it_had_before(
    is_voter: bool, has_observers: bool, silent: bool
) -> None:
    """Soon after a restart a relay without any may have some; a voter has no more to come."""
    core = core_of(follower(), voters=(1, 2) if is_voter else (2, 3), relays=RELAY)
    assert core.relay is not None
    core.relay.silent_until_ms = NOW_MS + silent
    if has_observers:
        core.relay.downstream = {key(5): observer(5)}
        core.relay.refresh()
    found = reported_subtree(core)
    assert (found is not None) == (has_observers or (silent and not is_voter))
    assert reported_subtree(core_of(follower())) is None


def test_a_report_without_routes_leaves_open_which_were_reported_last() -> None:
    """Method: the only observer leaves soon after a restart, and returns."""
    relay = Relay(7, silent_until_ms=1_000)
    links = ((9, 7),)
    for found, expected in (
        (Subtree(4, 1, links), links),
        (None, ()),
        (Subtree(4, 1, links), ()),
    ):
        relay.subtree = found
        report = relay.report(500, 2, log_start=0)
        assert report is not None
        assert report.links == expected
    assert relay.report_again_ms == 500 + LINKS_REPEAT_MS


@pytest.mark.parametrize("offset", [19, 20, 21])
def test_at_the_first_fetch_a_replica_has_caught_up_only_at_the_end(offset: int) -> None:
    progress = observer(5)
    progress.note_fetch(offset, now_ms=100, leader_end=20)
    assert progress.last_caught_up_ms == (100 if offset >= 20 else -1)

"""The rules that the groups of ``CoreState`` keep on their own."""

from __future__ import annotations

import random

import pytest

from quorum.config import QuorumConfig
from quorum.core.contract.output import LeadershipChanged
from quorum.core.positions.download import Download
from quorum.core.state.bootstrap_peer import BootstrapPeer, BootstrapProgress
from quorum.core.state.core_state import CoreState
from quorum.core.state.disk_progress import DiskProgress
from quorum.core.state.disk_watch import DiskWatch
from quorum.core.state.following import Following
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.known_leader import NO_LEADER, KnownLeader
from quorum.core.state.peer_requests import InFlight, PendingRequests, Purpose
from quorum.core.state.peers import PeerTable
from quorum.core.state.rate_limits import RateLimits
from quorum.core.state.upstream import Upstream
from quorum.types import Endpoint, LeaderAndEpoch, OffsetAndEpoch
from tests.support.core_disk import key

SNAPSHOT = OffsetAndEpoch(5, 1)


def test_no_module_adds_state_of_its_own() -> None:
    core = CoreState(
        config=QuorumConfig(), cluster_id="c", me=key(1), rng=random.Random(1), bootstrap=(1, 2)
    )
    with pytest.raises(AttributeError):
        core.download = None  # type: ignore[attr-defined]
    assert core.following.bootstrap_servers == (2,)


def test_an_idle_disk_is_watched_from_the_next_ticket_on() -> None:
    disk = DiskProgress(DiskWatch(limit_ms=800))
    assert [disk.next_ticket(100), disk.next_ticket(150)] == [1, 2]
    assert disk.watch.since_ms == 100
    disk.durable_ticket = 1
    disk.restart_watch(200)
    assert (disk.watch.since_ms, disk.watch.check_due_ms) == (200, 900)
    disk.durable_ticket = 2
    disk.restart_watch(300)
    assert disk.watch.check_due_ms == NEVER_MS


def test_a_planned_store_of_the_watermark_is_not_postponed() -> None:
    disk = DiskProgress(DiskWatch(limit_ms=800))
    disk.store_watermark_at(50)
    disk.store_watermark_at(90)
    assert disk.watermark_store_due_ms == 50


def test_only_one_request_is_in_flight() -> None:
    requests = PendingRequests(40)
    first = InFlight(2, Purpose.FETCH, request_id=requests.next_id(), ticket=0)
    second = InFlight(3, Purpose.FETCH, request_id=requests.next_id(), ticket=0)
    requests.begin_flight(first)
    requests.begin_flight(second)
    assert (first.request_id, second.request_id) == (0, 42)
    assert list(requests) == [second]
    requests.end_flight()
    assert list(requests) == []


def test_another_leader_makes_forget_what_was_known_of_the_former_one() -> None:
    leader = KnownLeader(LeaderAndEpoch(2, 1), (Endpoint("CONTROLLER", "h", 1),))
    leader.forget()
    assert (leader.lost, leader.endpoints) == (None, ())


def test_leadership_is_announced_once() -> None:
    leader = KnownLeader()
    change = LeadershipChanged(2, 1, is_leader=False, can_write=False)
    assert [leader.announce(each) for each in (NO_LEADER, change, change)] == [False, True, False]


def test_only_the_download_that_is_named_ends() -> None:
    download = Download(SNAPSHOT, 1)
    following = Following((), PeerTable(QuorumConfig()), Upstream(), download)
    assert following.end_download(OffsetAndEpoch(6, 1)) is None
    assert following.is_replacing_log
    assert following.end_download(SNAPSHOT) is download
    assert not following.is_replacing_log


def test_a_voter_that_the_operator_does_not_wait_for_is_not_required() -> None:
    peers = {each: BootstrapPeer(each, voter=key(each)) for each in (2, 3)}
    assert BootstrapProgress(peers, frozenset({3})).required == [2]


@pytest.mark.parametrize("is_known", [True, False])
def test_a_raise_beyond_the_budget_is_not_charged(*, is_known: bool) -> None:
    """Neither budget is used up by the other's."""
    limits = RateLimits()
    assert limits.charge_raise(1_000, 60, 100, is_known=is_known)
    assert not limits.charge_raise(1_000, 41, 100, is_known=is_known)
    assert limits.charge_raise(1_000, 100, 100, is_known=not is_known)
    assert limits.charge_raise(1_020, 60, 100, is_known=is_known)
    assert not limits.charge_raise(1_020, 100, 100, is_known=not is_known)

"""A disk that hangs: the leader resigns, a follower may not campaign, and when that ends."""

from __future__ import annotations

import pytest

from quorum.config import QuorumConfig
from quorum.core.contract.events import DiskRecovered, DiskStalled, RoleChanged
from quorum.core.contract.local_events import TransferLeadership
from quorum.core.contract.reasons import RoleChangeReason
from quorum.core.messages.vote_messages import VoteRequest, VoteResponse
from quorum.core.state.disk_watch import DiskWatch
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.timers import Timer
from quorum.types import NodeId
from tests.support.core_cluster import CLUSTER, CoreCluster
from tests.support.core_disk import key

LIMIT_MS = QuorumConfig().disk_stall_ms


def reasons(cluster: CoreCluster, node_id: NodeId) -> list[RoleChangeReason]:
    events = cluster.members[node_id].events
    return [each.reason for each in events if isinstance(each, RoleChanged)]


def hang(cluster: CoreCluster, node_id: NodeId) -> None:
    """From now on the disk completes nothing."""
    cluster.slow_disks.add(node_id)


def test_a_leader_whose_disk_hangs_resigns_and_another_follows() -> None:
    """Goal: a leader with a hung disk resigns (hashicorp/raft #503).

    Method: the followers commit without the leader's disk and continue to fetch; that must not
    help it.
    """
    cluster = CoreCluster()
    cluster.elect(1)
    hang(cluster, 1)
    cluster.propose(1)
    cluster.settle()
    assert cluster[1].high_watermark == cluster[1].log_end_offset, "committed by the others"
    cluster.advance(LIMIT_MS - 1)
    assert cluster[1].is_leader
    cluster.advance(1_000)
    assert RoleChangeReason.DISK_STALLED in reasons(cluster, 1)
    (leader,) = cluster.leaders()
    assert leader in (2, 3)
    assert cluster[1].disk_stalled_ms >= LIMIT_MS


def test_it_does_not_campaign_until_the_disk_recovers() -> None:
    """Goal: not elected again while hung. Method: much time, the others are gone."""
    cluster = CoreCluster()
    cluster.elect(1)
    hang(cluster, 1)
    cluster.propose(1)
    cluster.advance(LIMIT_MS + 100)
    cluster.isolate(1)
    mark = len(cluster.members[1].events)
    cluster.advance(20_000)
    later = cluster.members[1].events[mark:]
    stood = [each for each in later if isinstance(each, RoleChanged) and each.role == "Prospective"]
    assert not stood
    cluster.slow_disks.clear()
    cluster.persist(1)
    assert any(isinstance(each, DiskRecovered) for each in cluster.members[1].events)
    assert cluster[1].disk_stalled_ms == 0
    cluster.advance(5_000)
    assert "Prospective" in [
        each.role for each in cluster.members[1].events if isinstance(each, RoleChanged)
    ]


def test_a_follower_with_a_hung_disk_neither_campaigns_nor_grants_votes() -> None:
    """Goal: the same for followers. Method: hang 2 with records on the way, then ask it."""
    cluster = CoreCluster()
    cluster.elect(1)
    hang(cluster, 2)
    cluster.propose(1)
    cluster.settle()
    cluster.advance(LIMIT_MS + 100)
    assert cluster.leaders() == [1]
    cluster.crash(1)
    cluster.crash(3)
    mark = len(cluster.members[2].events)
    cluster.advance(10_000)
    later = cluster.members[2].events[mark:]
    assert not [each for each in later if isinstance(each, RoleChanged)]
    request = VoteRequest(
        9, CLUSTER, key(3), key(2), cluster[2].epoch, cluster[2].log_end, pre_vote=True
    )
    output = cluster.call(2, lambda node: node.receive(cluster.now_ms, 3, request))
    (answer,) = [each.message for each in output.immediate]
    assert isinstance(answer, VoteResponse)
    assert not answer.granted


def test_a_lone_voter_stays_leader() -> None:
    """Goal: no other voter could take over. Method: one voter, hung, then recovered."""
    cluster = CoreCluster((1,))
    cluster.elect(1)
    hang(cluster, 1)
    cluster.propose(1)
    cluster.advance(LIMIT_MS * 3)
    assert cluster.leaders() == [1]
    assert any(isinstance(each, DiskStalled) for each in cluster.members[1].events)
    cluster.slow_disks.clear()
    cluster.persist(1)
    assert cluster[1].high_watermark == cluster[1].log_end_offset


def test_leadership_is_not_handed_to_a_hung_disk() -> None:
    """Goal: no transfer to a node that could not lead. Method: the target's disk hangs."""
    cluster = CoreCluster()
    cluster.elect(1)
    hang(cluster, 3)
    cluster.propose(1)
    cluster.settle()
    cluster.advance(LIMIT_MS + 100)
    event = TransferLeadership(7, 3)
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, event))
    cluster.advance(1_000)
    assert cluster.leaders() == [1]


def test_an_idle_disk_owes_nothing() -> None:
    """Goal: no alarm without work. Method: a long quiet time."""
    cluster = CoreCluster()
    cluster.elect(1)
    cluster.advance(60_000)
    assert cluster.leaders() == [1]
    assert not [each for each in cluster.members[1].events if isinstance(each, DiskStalled)]


def test_a_slow_disk_that_goes_on_is_not_hung() -> None:
    """Goal: progress counts, not the queue. Method: completions just below the limit."""
    watch = DiskWatch(800)
    watch.begin(0)
    assert watch.check_due_ms == 700
    for now_ms in (690, 1380, 2070):
        assert not watch.check(now_ms)
        watch.begin(now_ms)
    assert not watch.is_stalled


def test_a_process_that_was_stopped_looks_twice() -> None:
    """Goal: SIGSTOP is not a hung disk. Method: the deadline is long over at the first look."""
    watch = DiskWatch(800)
    watch.begin(0)
    assert not watch.check(60_000)
    watch.end()
    assert watch.check_due_ms == NEVER_MS
    assert not watch.check(70_000)
    watch.begin(0)
    assert not watch.check(60_000)
    assert not watch.check(60_050)
    assert watch.check(60_100)


def test_a_disk_that_hangs_at_its_second_task_has_hung() -> None:
    """Goal: a completion does not end the watch while more is outstanding.

    Method: two tickets; the first one completes, the second one never does.
    """
    cluster = CoreCluster((1,))
    cluster.elect(1)
    hang(cluster, 1)
    cluster.propose(1)
    cluster.propose(1)
    member = cluster.members[1]
    (ticket, _), _ = member.pending
    cluster.call(1, lambda node: node.persisted(cluster.now_ms, ticket))
    cluster.advance(LIMIT_MS * 3)
    assert any(isinstance(each, DiskStalled) for each in member.events)


def test_a_completion_that_is_reported_twice_is_progress_once() -> None:
    """Goal: only a completion shows that a disk still works. Method: the runtime repeats the last
    one while a later write hangs.
    """
    cluster = CoreCluster()
    cluster.elect(1)
    done = cluster[1]._core.disk.durable_ticket
    hang(cluster, 1)
    cluster.propose(1)
    for _ in range(LIMIT_MS // 100 + 1):
        cluster.advance(100)
        cluster.call(1, lambda node: node.persisted(cluster.now_ms, done))
    assert RoleChangeReason.DISK_STALLED in reasons(cluster, 1)


def test_the_disk_is_looked_at_when_it_is_due_and_not_before() -> None:
    cluster = CoreCluster()
    cluster.elect(1)
    hang(cluster, 1)
    cluster.propose(1)
    core = cluster[1]._core
    due_ms = core.disk.watch.check_due_ms
    for now_ms, count in ((due_ms - 1, 0), (due_ms, 1)):
        cluster[1].tick(now_ms)
        assert core.timers_fired[Timer.DISK_SUSPECTED] == count


@pytest.mark.parametrize(("limit_ms", "second_look_ms"), [(1, 1), (8, 1), (15, 1), (16, 2)])
def test_the_second_look_is_an_eighth_of_the_limit_later(
    limit_ms: int, second_look_ms: int
) -> None:
    watch = DiskWatch(limit_ms)
    watch.begin(1_000)
    assert watch.check_due_ms == 1_000 + limit_ms - second_look_ms
    assert not watch.check(watch.check_due_ms)
    assert watch.check_due_ms == 1_000 + limit_ms
    assert watch.check(watch.check_due_ms)


@pytest.mark.parametrize("ends", [True, False])
def test_progress_ends_the_suspicion(ends: bool) -> None:
    """Goal: the next delay gets two checks as well. Method: the disk goes idle or continues."""
    watch = DiskWatch(1_000)
    watch.begin(0)
    assert not watch.check(watch.check_due_ms)
    if ends:
        watch.end()
    watch.begin(5_000)
    assert not watch.check(watch.check_due_ms)
    assert not watch.is_stalled


def test_a_disk_that_has_hung_is_reported_once() -> None:
    watch = DiskWatch(1_000)
    watch.begin(0)
    found = [watch.check(each) for each in (875, 1_000, 1_001, 1 << 62)]
    assert found == [False, True, False, False]


def test_of_a_disk_that_has_hung_nothing_more_is_found() -> None:
    """Not even if it completes something and hangs again: the node resigns only once."""
    watch = DiskWatch(1_000)
    watch.begin(0)
    assert [watch.check(each) for each in (875, 1_000)] == [False, True]
    assert watch.check_due_ms == NEVER_MS
    watch.begin(2_000)
    assert [watch.check(each) for each in (2_875, 3_000, 4_000)] == [False, False, False]
    assert not watch.is_suspected

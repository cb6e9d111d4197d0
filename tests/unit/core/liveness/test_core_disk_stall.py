"""A disk that hangs: who resigns, who may not stand, and when that ends."""

from __future__ import annotations

from quorum.config import QuorumConfig
from quorum.core.contract.events import DiskRecovered, DiskStalled, RoleChanged
from quorum.core.contract.local_events import TransferLeadership
from quorum.core.contract.reasons import RoleChangeReason
from quorum.core.messages.vote_messages import VoteRequest, VoteResponse
from quorum.core.state.disk_watch import DiskWatch
from quorum.core.state.held_fetches import NEVER_MS
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
    """Goal: a hung disk does not keep the office (hashicorp/raft #503).

    Method: the followers commit without the leader's disk and fetch on; that must not help it.
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


def test_it_stands_no_more_until_the_disk_recovers() -> None:
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


def test_a_follower_whose_disk_hangs_neither_stands_nor_grants() -> None:
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


def test_a_lone_voter_stays_in_office() -> None:
    """Goal: nobody could take over. Method: one voter, hung, then well again."""
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
    fact = TransferLeadership(7, 3)
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, fact))
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

"""When the log start may move, and which snapshots go with it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorum.config import QuorumConfig
from quorum.core.contract.local_events import LeaseChanged, SnapshotCreated, SnapshotRemoved
from quorum.core.contract.output import AdvanceLogStart
from quorum.core.messages.epoch_messages import BeginQuorumEpochRequest
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.errors import ErrorCode, QuorumUsageError
from quorum.types import LOG_BEGINNING, NodeId, OffsetAndEpoch, SnapshotId
from tests.support.core_cluster import CLUSTER, CoreCluster
from tests.support.core_disk import disk_with, key

FIRST, SECOND = OffsetAndEpoch(4, 1), OffsetAndEpoch(6, 1)


def checkpoint(cluster: CoreCluster, node_id: int, snapshot_id: SnapshotId) -> None:
    cluster.members[node_id].add_snapshot(snapshot_id)
    created = SnapshotCreated(snapshot_id, 40)
    cluster.call(node_id, lambda node: node.on_local_event(cluster.now_ms, created))


def advances(cluster: CoreCluster, node_id: int) -> list[AdvanceLogStart]:
    effects = cluster.members[node_id].effects
    return [each for each in effects if isinstance(each, AdvanceLogStart)]


def led(**settings: int) -> CoreCluster:
    """Node 1 leads with four committed records behind the opening ones."""
    cluster = CoreCluster(observers=(9,), config=QuorumConfig(append_delay_ms=0, **settings))
    cluster.elect(1)
    cluster.propose(1, 4)
    cluster.settle()
    cluster.advance(600)
    assert cluster[9].log_end_offset == 7
    return cluster


def test_the_leader_trims_once_every_live_replica_is_beyond() -> None:
    """Goal: 630.5. Method: a checkpoint when all are there; the start carries its epoch."""
    cluster = led()
    checkpoint(cluster, 1, FIRST)
    assert advances(cluster, 1) == [AdvanceLogStart(FIRST)]
    assert cluster[1].log_start == FIRST


def test_a_live_observer_that_is_behind_holds_the_log() -> None:
    """Goal: observers count while they live. Method: cut one off, wait out its session."""
    cluster = led(observer_session_ms=5_000)
    cluster.isolate(9)
    cluster.propose(1, 2)
    cluster.settle()
    ahead = OffsetAndEpoch(9, 1)
    checkpoint(cluster, 1, ahead)
    cluster.advance(4_000)
    assert cluster[1].log_start.offset == 0
    cluster.advance(3_000)
    assert cluster[1].log_start == ahead


def test_a_snapshot_held_long_enough_is_trimmed_to_regardless() -> None:
    """Goal: start.offset.lag.time.max.ms. Method: a stuck but live voter."""
    cluster = led(start_offset_lag_max_ms=8_000)
    cluster.cut = {(1, 3)}
    cluster.propose(1, 2)
    cluster.settle()
    ahead = OffsetAndEpoch(9, 1)
    checkpoint(cluster, 1, ahead)
    cluster.advance(7_500)
    assert cluster[1].log_start.offset == 0
    cluster.advance(2_500)
    assert cluster[1].log_start == ahead


def test_a_restart_does_not_begin_the_holding_time_anew() -> None:
    """Goal: the disk has held the file, whichever process ran. Method: restart in mid-time.

    An observer without a Fetch to the new leader keeps it from trimming for a session.
    """
    config = QuorumConfig(append_delay_ms=0, start_offset_lag_max_ms=60_000)
    cluster = CoreCluster((1,), config=config)
    cluster.elect(1)
    cluster.propose(1, 4)
    cluster.settle()
    cluster.crash(1)
    member = cluster.members[1]
    member.disk = replace(member.disk.with_snapshot(FIRST, 40), ages_ms={FIRST: 50_000})
    cluster.restart(1)
    cluster.elect(1)
    cluster.advance(5_000)
    assert cluster[1].log_start.offset == 0
    cluster.advance(8_000)
    assert cluster[1].log_start == FIRST


def test_a_voter_that_never_fetched_holds_the_log_for_one_session() -> None:
    """Goal: a new leader knows nothing yet. Method: a voter that is away from the start."""
    cluster = CoreCluster(config=QuorumConfig(observer_session_ms=5_000))
    cluster.crash(3)
    cluster.elect(1)
    cluster.propose(1, 3)
    cluster.settle()
    checkpoint(cluster, 1, FIRST)
    cluster.advance(3_000)
    assert cluster[1].log_start.offset == 0
    cluster.advance(4_000)
    assert cluster[1].log_start == FIRST


def test_a_new_leader_keeps_its_log_for_observers_before_their_first_fetch() -> None:
    """Goal: 630.5 for observers of an earlier leader. Method: one never fetches from the next.

    Its checkpoint exists already, and all replicas that fetched are beyond it.
    """
    cluster = led(observer_session_ms=5_000)
    cluster.isolate(9)
    cluster.propose(1, 2)
    cluster.settle()
    cluster.advance(600)
    ahead = OffsetAndEpoch(9, 1)
    checkpoint(cluster, 2, ahead)
    checkpoint(cluster, 3, ahead)
    leader, elected_ms = succeeded(cluster)
    cluster.advance(elected_ms + 4_000 - cluster.now_ms)
    assert {each.key.id for each in cluster[leader].replicas()} == {1, 2, 3}
    assert cluster[leader].log_start.offset == 0
    cluster.advance(elected_ms + 5_000 - cluster.now_ms)
    assert cluster[leader].log_start.offset == 0, "the session has not passed yet"
    cluster.advance(1_500)
    assert cluster[leader].log_start == ahead


def test_a_new_leader_waits_no_longer_than_the_holding_time() -> None:
    """Goal: the lag time ends this wait, too. Method: it is shorter than the session."""
    cluster = led(observer_session_ms=60_000, start_offset_lag_max_ms=3_000)
    leader, _ = succeeded(cluster)
    checkpoint(cluster, leader, FIRST)
    cluster.advance(2_500)
    assert cluster[leader].log_start.offset == 0
    cluster.advance(2_000)
    assert cluster[leader].log_start == FIRST


def succeeded(cluster: CoreCluster) -> tuple[NodeId, int]:
    """Crash node 1, let another lead, restart node 1; return the leader and its start time."""
    cluster.crash(1)
    while not cluster.leaders():
        cluster.advance(50)
    (leader,) = cluster.leaders()
    elected_ms = cluster.now_ms
    cluster.restart(1)
    cluster.settle()
    return leader, elected_ms


def test_older_snapshots_go_but_never_the_newest_or_a_leased_one() -> None:
    """Goal: 630.6. Method: three checkpoints, one of them being read, then not any more."""
    cluster = led()
    snapshots = [OffsetAndEpoch(offset, 1) for offset in (3, 4, 6)]
    cluster.isolate(9)
    cluster.cut |= {(1, 2), (1, 3)}
    leased = LeaseChanged((snapshots[0],))
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, leased))
    for each in snapshots:
        checkpoint(cluster, 1, each)
    assert advances(cluster, 1)[-1] == AdvanceLogStart(snapshots[2], (snapshots[1],))
    assert cluster[1].snapshots == (snapshots[0], snapshots[2])
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, LeaseChanged(())))
    assert advances(cluster, 1)[-1] == AdvanceLogStart(snapshots[2], (snapshots[0],))
    assert cluster[1].snapshots == (snapshots[2],)


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        (None, LOG_BEGINNING),
        (OffsetAndEpoch(3, 1), OffsetAndEpoch(3, 1)),
        (SECOND, OffsetAndEpoch(5, 1)),
    ],
)
def test_a_follower_trims_to_the_leaders_start_as_far_as_its_own_snapshot_allows(
    own: SnapshotId | None, expected: OffsetAndEpoch
) -> None:
    """Goal: min(leader's log start, newest local snapshot). Method: below, above, without."""
    disk = disk_with(
        "1:a 1:b 1:c 1:d 1:e 1:f 2:g", snapshots={own: 9} if own else None, high_watermark=6
    )
    cluster = CoreCluster(disks={1: disk})
    cluster.queue.clear()
    begin = BeginQuorumEpochRequest(9, CLUSTER, key(1), key(2), 5)
    cluster.call(1, lambda node: node.receive(cluster.now_ms, 2, begin))
    request = cluster.sent_by(1, FetchRequest)[-1]
    answer = FetchResponse(request.request_id, ErrorCode.NONE, 2, 5, 6, 5)
    cluster.call(1, lambda node: node.receive(cluster.now_ms, 2, answer))
    assert cluster[1].log_start == expected


def test_the_log_start_never_falls() -> None:
    """Goal: not even when a leader's is lower, nor by a restart. Method: both."""
    cluster = led()
    checkpoint(cluster, 2, FIRST)
    checkpoint(cluster, 1, FIRST)
    cluster.advance(600)
    assert cluster[2].log_start == FIRST
    cluster.crash(2)
    cluster.restart(2)
    cluster.advance(600)
    assert cluster[2].log_start == FIRST


def test_without_its_snapshot_a_trimmed_leader_reports_an_error() -> None:
    """Goal: a quarantined checkpoint is survived. Method: remove the only one, fetch from 0."""
    cluster = led()
    checkpoint(cluster, 1, FIRST)
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, SnapshotRemoved(FIRST)))
    request = FetchRequest(5, CLUSTER, key(12), 1, 0, 0)
    output = cluster.call(1, lambda node: node.receive(cluster.now_ms, 12, request))
    (answer,) = [each.message for each in output.immediate if each.to == 12]
    assert isinstance(answer, FetchResponse)
    assert answer.error == ErrorCode.SNAPSHOT_NOT_FOUND


def test_a_snapshot_beyond_the_high_watermark_is_our_own_mistake() -> None:
    """Goal: 630.1. Method: report one that contains uncommitted records."""
    cluster = CoreCluster()
    with pytest.raises(QuorumUsageError, match="beyond high watermark"):
        cluster[1].on_local_event(cluster.now_ms, SnapshotCreated(OffsetAndEpoch(5, 1)))

"""The log and checkpoints that a leader keeps for its replicas, and those that it serves."""

from __future__ import annotations

import pytest

from quorum.config import QuorumConfig
from quorum.core.contract.events import LogStartAdvanced
from quorum.core.contract.local_events import LeaseChanged, SnapshotCreated
from quorum.core.contract.output import AdvanceLogStart, Output
from quorum.core.messages.epoch_messages import BeginQuorumEpochRequest
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.snapshot_messages import FetchSnapshotResponse, ServeChunk
from quorum.core.state.timers import Timer
from quorum.errors import ErrorCode
from quorum.types import BOOTSTRAP_SNAPSHOT_ID, OffsetAndEpoch, ReplicaKey
from tests.support.core_cluster import CLUSTER, CoreCluster
from tests.support.core_disk import disk_with, key
from tests.support.lone_leader import LoneLeader

SESSION_MS = 5_000
HOLD_MS = 8_000
CONFIG = QuorumConfig(
    append_delay_ms=0, observer_session_ms=SESSION_MS, start_offset_lag_max_ms=HOLD_MS
)
OBSERVER = 9


def led() -> LoneLeader:
    """Node 1 leads; its voters have all of a log that ends at 7, observer 9 nothing yet."""
    cluster = LoneLeader(config=CONFIG)
    cluster.propose(1, 4)
    for each in (2, 3):
        cluster.fetch(each)
    assert cluster[1].high_watermark == 7
    return cluster


def starts(output: Output) -> list[OffsetAndEpoch]:
    """Return the log starts that an output reports; each is submitted to the disk as well."""
    advanced_to = [each.start for each in output.events if isinstance(each, LogStartAdvanced)]
    assert advanced_to == [
        each.start for each in output.persist if isinstance(each, AdvanceLogStart)
    ]
    return advanced_to


def created(cluster: LoneLeader, offset: int) -> Output:
    return cluster.report(SnapshotCreated(OffsetAndEpoch(offset, 1), 40))


def test_a_log_start_that_all_have_reached_is_announced_and_is_no_matter_of_time() -> None:
    cluster = led()
    assert starts(created(cluster, 7)) == [OffsetAndEpoch(7, 1)]
    assert cluster.fired(Timer.SNAPSHOT_HOLD) == 0


def test_a_voter_set_that_no_log_can_revert_to_is_forgotten_with_the_log() -> None:
    """The set came with the bootstrap checkpoint, and is in the log since epoch 1."""
    cluster = led()
    record = cluster[1].voters_offset
    assert cluster[1].voter_set_at(record).ids == (1, 2, 3)
    created(cluster, 7)
    assert cluster[1].voter_set_at(record).ids == ()
    assert cluster[1].voter_set_at(7).ids == (1, 2, 3)


def test_an_observer_holds_the_log_for_exactly_one_session() -> None:
    for silent_ms, trimmed in ((SESSION_MS, []), (SESSION_MS + 1, [OffsetAndEpoch(7, 1)])):
        cluster = led()
        cluster.fetch(OBSERVER, 3)
        for _ in range(5):
            cluster.now_ms += silent_ms // 5
            cluster.fetch(2)
            cluster.fetch(3)
        cluster.now_ms += silent_ms % 5
        assert starts(created(cluster, 7)) == trimmed


def test_the_end_of_the_holding_time_counts_as_a_timer_only_where_it_decides() -> None:
    cluster = led()
    cluster.fetch(OBSERVER, 3)
    made_ms = cluster.now_ms
    assert starts(created(cluster, 7)) == []
    for _ in range(HOLD_MS // 500):
        cluster.now_ms += 500
        for each in (2, 3):
            cluster.fetch(each)
        cluster.fetch(OBSERVER, 3)
        assert cluster[1].log_start.offset == 0 or cluster.now_ms >= made_ms + HOLD_MS
    cluster.now_ms += CONFIG.fetch_timeout_ms // 2
    cluster.tick(1)
    assert cluster[1].log_start.offset == 7
    assert cluster.fired(Timer.SNAPSHOT_HOLD) == 1


def test_who_downloads_a_checkpoint_needs_the_log_from_there_on_only() -> None:
    """Goal: a long download does not hold the whole log. Method: an observer without anything
    fetches, is sent to the checkpoint, and begins to download it; a newer one is made."""
    cluster = led()
    cluster.fetch(OBSERVER, 0, last_fetched_epoch=0)
    assert starts(created(cluster, 5)) == []
    cluster.fetch_snapshot(OBSERVER, OffsetAndEpoch(5, 1))
    assert starts(created(cluster, 7)) == [OffsetAndEpoch(5, 1)]


def test_a_consumer_that_reads_a_checkpoint_is_no_replica() -> None:
    cluster = led()
    created(cluster, 5)
    output = cluster.fetch_snapshot(-1, OffsetAndEpoch(5, 1), replica=ReplicaKey(-1))
    assert [type(each.message) for each in output.immediate] == [ServeChunk]
    assert [each.key.id for each in cluster[1].replicas()] == [1, 2, 3]


def test_without_a_checkpoint_that_may_go_the_end_of_a_lease_changes_nothing() -> None:
    cluster = led()
    created(cluster, 7)
    assert cluster.report(LeaseChanged((OffsetAndEpoch(7, 1),))).persist == []
    assert cluster.report(LeaseChanged(())).persist == []


@pytest.mark.parametrize(
    ("size", "position", "error"),
    [
        (1, 0, None),
        (1, 1, ErrorCode.POSITION_OUT_OF_RANGE),
        (40, 39, None),
        (40, 40, ErrorCode.POSITION_OUT_OF_RANGE),
        (0, 40, None),
    ],
)
def test_a_position_must_lie_in_the_file_if_its_size_is_known(
    size: int, position: int, error: ErrorCode | None
) -> None:
    """Of a file of unknown size the runtime finds out what there is to read."""
    snapshot = OffsetAndEpoch(2, 1)
    cluster = LoneLeader(disk_log="1:a 1:b 1:c", snapshots={snapshot: size})
    (sent,) = cluster.fetch_snapshot(2, snapshot, position=position).immediate
    answer = sent.message
    assert isinstance(answer, FetchSnapshotResponse | ServeChunk)
    found = answer.error if isinstance(answer, FetchSnapshotResponse) else None
    assert (found, answer.position) == (error, position)


def test_the_bootstrap_checkpoint_is_never_served() -> None:
    """It is not replicated: each node has its own."""
    cluster = LoneLeader(disk_log="1:a", snapshots={BOOTSTRAP_SNAPSHOT_ID: 40})
    assert cluster[1].snapshots == (BOOTSTRAP_SNAPSHOT_ID,)
    (sent,) = cluster.fetch_snapshot(2, BOOTSTRAP_SNAPSHOT_ID).immediate
    assert isinstance(sent.message, FetchSnapshotResponse)
    assert sent.message.error is ErrorCode.SNAPSHOT_NOT_FOUND


@pytest.mark.parametrize("leader_start", [0, 3, 4, 5])
def test_a_follower_whose_newest_checkpoint_is_its_log_start_keeps_its_log(
    leader_start: int,
) -> None:
    """Method: the leader's log starts before, at, or behind that of the follower."""
    start = OffsetAndEpoch(4, 1)
    disk = disk_with("1:e 1:f 2:g", start=start, snapshots={start: 9}, high_watermark=6)
    cluster = CoreCluster(disks={1: disk})
    cluster.queue.clear()
    begin = BeginQuorumEpochRequest(9, CLUSTER, key(1), key(2), 5)
    cluster.call(1, lambda node: node.receive(cluster.now_ms, 2, begin))
    request = cluster.sent_by(1, FetchRequest)[-1]
    answer = FetchResponse(request.request_id, ErrorCode.NONE, 2, 5, 6, leader_start)
    output = cluster.call(1, lambda node: node.receive(cluster.now_ms, 2, answer))
    assert starts(output) == []
    assert cluster[1].log_start == start

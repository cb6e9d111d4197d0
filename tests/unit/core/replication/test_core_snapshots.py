"""FetchSnapshot on both sides: chunks, refusals, resuming, installing."""

from __future__ import annotations

import pytest

from quorum.config import QuorumConfig
from quorum.core.contract.events import (
    DownloadEnded,
    DownloadStarted,
    MessageIgnored,
    TruncationRefused,
)
from quorum.core.contract.local_events import SnapshotCreated, SnapshotRejected, SnapshotSealed
from quorum.core.contract.outcomes import DownloadOutcome
from quorum.core.contract.output import (
    AbandonDownload,
    BeginDownload,
    ReplaceLogWith,
    SealDownload,
    SnapshotInstalled,
    WriteChunk,
)
from quorum.core.messages.fetch_messages import FetchRequest
from quorum.core.messages.received_records import VotersAt
from quorum.core.messages.snapshot_messages import (
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    ServeChunk,
)
from quorum.core.messages.vote_messages import VoteRequest, VoteResponse
from quorum.errors import ErrorCode
from quorum.types import LOG_BEGINNING, OffsetAndEpoch, SnapshotId
from tests.support.core_cluster import CLUSTER, CoreCluster
from tests.support.core_disk import disk_with, key, voter
from tests.support.download_steps import (
    SNAPSHOT,
    asked,
    chunk,
    follow,
    following,
    name_snapshot,
)

# The leader's side.


def serving() -> CoreCluster:
    snapshot = OffsetAndEpoch(2, 1)
    disks = {each: disk_with("1:a 1:b 1:c", snapshots={snapshot: 40}) for each in (1, 2, 3)}
    cluster = CoreCluster(disks=disks, config=QuorumConfig(snapshot_chunk_bytes=16))
    cluster.elect(1)
    return cluster


def ask(cluster: CoreCluster, **fields: object) -> FetchSnapshotResponse | ServeChunk:
    values: dict[str, object] = {
        "cluster_id": CLUSTER,
        "replica": key(2),
        "epoch": cluster[1].epoch,
        "snapshot_id": OffsetAndEpoch(2, 1),
        "position": 0,
        "max_bytes": 1000,
    }
    values.update(fields)
    request = FetchSnapshotRequest(7, **values)  # type: ignore[arg-type]
    output = cluster.call(1, lambda node: node.receive(cluster.now_ms, 2, request))
    sent = [each.message for each in output.immediate]
    (found,) = [each for each in sent if isinstance(each, FetchSnapshotResponse | ServeChunk)]
    return found


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"max_bytes": 0}, ErrorCode.INVALID_REQUEST),
        ({"replica": key(1)}, ErrorCode.INVALID_REQUEST),
        ({"epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"epoch": 99}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"snapshot_id": OffsetAndEpoch(3, 1)}, ErrorCode.SNAPSHOT_NOT_FOUND),
        ({"snapshot_id": LOG_BEGINNING}, ErrorCode.SNAPSHOT_NOT_FOUND),
        ({"position": -1}, ErrorCode.POSITION_OUT_OF_RANGE),
        ({"position": 40}, ErrorCode.POSITION_OUT_OF_RANGE),
    ],
)
def test_every_refusal_of_630_12(fields: dict[str, object], error: ErrorCode) -> None:
    """Goal: the error table. Method: one wrong field at a time."""
    answer = ask(serving(), **fields)
    assert isinstance(answer, FetchSnapshotResponse)
    assert answer.error == error
    assert answer.leader_id == 1


def test_a_follower_refuses_to_serve() -> None:
    """Goal: NOT_LEADER_OR_FOLLOWER with the leader's name. Method: ask a follower."""
    cluster = serving()
    request = FetchSnapshotRequest(7, CLUSTER, key(3), cluster[2].epoch, OffsetAndEpoch(2, 1), 0, 9)
    (sent,) = cluster[2].receive(cluster.now_ms, 3, request).immediate
    assert isinstance(sent.message, FetchSnapshotResponse)
    assert sent.message.error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert sent.message.leader_id == 1


def test_a_slice_is_named_for_the_runtime_to_read() -> None:
    """Goal: positions, no bytes. Method: ask from the middle."""
    answer = ask(serving(), position=32)
    assert isinstance(answer, ServeChunk)
    assert (answer.position, answer.bytes_max) == (32, 16)


def test_a_downloading_voter_counts_as_leader_contact_and_an_observer_does_not() -> None:
    """Goal: FetchSnapshot counts for check quorum. Method: only such requests for a while."""
    for replica, survives in ((key(2), True), (key(9), False)):
        cluster = serving()
        cluster.crash(2)
        cluster.crash(3)
        for _ in range(5):
            cluster.advance(1_000)
            if cluster[1].is_leader:
                ask(cluster, replica=replica)
        assert cluster[1].is_leader is survives


# The follower's side.


def test_chunks_are_fetched_one_after_the_other_and_acknowledge_nothing() -> None:
    """Goal: 630.9. Method: three chunks; no Fetch leaves between the first and the freeze."""
    cluster = following()
    output = name_snapshot(cluster)
    assert output.persist == [BeginDownload(SNAPSHOT)]
    fetches = len(cluster.sent_by(1, FetchRequest))
    assert chunk(cluster).persist == [WriteChunk(SNAPSHOT, 0, b"abcd")]
    assert asked(cluster).position == 4
    assert chunk(cluster).persist == [WriteChunk(SNAPSHOT, 4, b"abcd")]
    assert len(cluster.sent_by(1, FetchRequest)) == fetches
    cluster.slow_disks.add(1)
    last = chunk(cluster, b"ab")
    assert last.persist == [WriteChunk(SNAPSHOT, 8, b"ab"), SealDownload(SNAPSHOT, b"d")]
    assert len(cluster.sent_by(1, FetchRequest)) == fetches


def test_a_frozen_snapshot_replaces_the_log_and_fetching_goes_on_behind_it() -> None:
    """Goal: log start = log end = high watermark = its end. Method: download, then look."""
    cluster = following(disk_with("1:a 1:b"))
    name_snapshot(cluster)
    for data in (b"abcd", b"abcd", b"ab"):
        chunk(cluster, data)
    node = cluster[1]
    assert node.log_start == node.log_end == SNAPSHOT
    assert node.high_watermark == 10
    assert SnapshotInstalled(SNAPSHOT) in cluster.members[1].progress
    fetch = cluster.sent_by(1, FetchRequest)[-1]
    assert (fetch.fetch_offset, fetch.last_fetched_epoch) == (10, 3)


def test_the_fetch_behind_a_snapshot_waits_until_the_log_has_been_replaced() -> None:
    """Goal: that Fetch acknowledges the snapshot. Method: a slow disk under ReplaceLogWith."""
    cluster = following()
    name_snapshot(cluster)
    cluster.slow_disks.add(1)
    frozen = SnapshotSealed(SNAPSHOT, (), 10)
    output = cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, frozen))
    assert ReplaceLogWith(SNAPSHOT) in output.persist
    assert [type(each.message) for each in output.after_persist] == [FetchRequest]
    assert output.after_persist[0].ticket == output.ticket


def test_voters_come_from_the_snapshot() -> None:
    """Goal: membership is re-read. Method: freeze one that carries another set."""
    cluster = following()
    name_snapshot(cluster)
    carried = (VotersAt(9, (voter(2), voter(3), voter(4))),)
    frozen = SnapshotSealed(SNAPSHOT, carried, 10)
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, frozen))
    assert [each.key.id for each in cluster[1].voters] == [2, 3, 4]


@pytest.mark.parametrize(
    "fields",
    [
        {"snapshot_id": OffsetAndEpoch(11, 3)},
        {"position": 4},
        {"data": b""},
        {"data": bytes(11)},
        {"size": -1},
    ],
)
def test_a_chunk_that_does_not_fit_is_asked_for_again(fields: dict[str, object]) -> None:
    """Goal: a leader's mistake is never fatal. Method: one wrong field, then the right chunk."""
    cluster = following()
    name_snapshot(cluster)
    output = chunk(cluster, **fields)  # type: ignore[arg-type]
    (ignored,) = [each for each in output.events if isinstance(each, MessageIgnored)]
    assert ignored.is_violation
    assert output.persist == []
    cluster.now_ms += 20
    cluster.tick(1)
    assert asked(cluster).position == 0
    assert chunk(cluster).persist == [WriteChunk(SNAPSHOT, 0, b"abcd")]


@pytest.mark.parametrize("error", [ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE])
def test_a_refused_download_goes_back_to_fetch(error: ErrorCode) -> None:
    """Goal: rediscover. Method: the leader no longer has the file."""
    cluster = following()
    name_snapshot(cluster)
    output = chunk(cluster, b"", error=error)
    assert AbandonDownload(SNAPSHOT) in output.persist
    assert [type(each.message) for each in output.immediate] == [FetchRequest]


def test_a_new_leader_with_the_same_file_lets_the_download_go_on() -> None:
    """Goal: resume. Method: change the epoch after one chunk; same id, size and digest."""
    cluster = following()
    name_snapshot(cluster)
    chunk(cluster)
    follow(cluster, 3, 6)
    output = name_snapshot(cluster, leader=3, epoch=6)
    assert output.persist == []
    assert asked(cluster).position == 4
    output = chunk(cluster, leader_id=3, epoch=6)
    assert output.persist == [WriteChunk(SNAPSHOT, 4, b"abcd")]


def test_a_new_leader_with_another_file_of_that_name_makes_it_start_over() -> None:
    """Goal: never mix two files. Method: the same id with another digest."""
    cluster = following()
    name_snapshot(cluster)
    chunk(cluster)
    follow(cluster, 3, 6)
    name_snapshot(cluster, leader=3, epoch=6)
    output = chunk(cluster, leader_id=3, epoch=6, file_digest=b"other")
    assert output.persist == [BeginDownload(SNAPSHOT)]
    assert DownloadStarted(SNAPSHOT, 3) in output.events
    assert not [each for each in output.events if isinstance(each, MessageIgnored)]
    assert [type(each.message) for each in output.immediate] == [FetchSnapshotRequest]
    assert asked(cluster).position == 0
    output = chunk(cluster, leader_id=3, epoch=6, file_digest=b"other")
    assert output.persist == [WriteChunk(SNAPSHOT, 0, b"abcd")]


def test_a_chunk_of_another_snapshot_leaves_the_download_alone() -> None:
    """Goal: look before changing. Method: a wrong id with another digest after one chunk."""
    cluster = following()
    name_snapshot(cluster)
    chunk(cluster)
    stray = OffsetAndEpoch(20, 4)
    output = chunk(cluster, snapshot_id=stray, size=11, file_digest=b"other")
    (ignored,) = [each for each in output.events if isinstance(each, MessageIgnored)]
    assert ignored.is_violation
    assert output.persist == []
    cluster.now_ms += 20
    cluster.tick(1)
    assert asked(cluster).position == 4


def test_a_new_leader_with_another_snapshot_replaces_the_download() -> None:
    """Goal: one download at a time. Method: another id after the change of leader."""
    cluster = following()
    name_snapshot(cluster)
    chunk(cluster)
    follow(cluster, 3, 6)
    newer = OffsetAndEpoch(20, 4)
    output = name_snapshot(cluster, newer, leader=3, epoch=6)
    assert output.persist == [AbandonDownload(SNAPSHOT), BeginDownload(newer)]


def test_a_rejected_file_is_fetched_again() -> None:
    """Goal: corruption on the way is repaired. Method: the runtime rejects the whole file."""
    cluster = following()
    name_snapshot(cluster)
    rejected = SnapshotRejected(SNAPSHOT, "checksum")
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, rejected))
    assert (
        DownloadEnded(SNAPSHOT, DownloadOutcome.REJECTED, "checksum") in cluster.members[1].events
    )
    cluster.now_ms += 20
    cluster.tick(1)
    output = name_snapshot(cluster)
    assert BeginDownload(SNAPSHOT) in output.persist


@pytest.mark.parametrize(
    "snapshot_id",
    [
        OffsetAndEpoch(-1, 3),
        OffsetAndEpoch(10, -1),
        OffsetAndEpoch(10, 0),
        OffsetAndEpoch(10, 6),
        LOG_BEGINNING,
        OffsetAndEpoch(1, 1),
        OffsetAndEpoch(3, 1),
    ],
)
def test_a_snapshot_that_cannot_be_needed_is_not_fetched(snapshot_id: SnapshotId) -> None:
    """Goal: no loop and no loss. Method: invalid ids, one below the high watermark, one we have."""
    cluster = following(disk_with("1:a 1:b 1:c", high_watermark=2))
    output = name_snapshot(cluster, snapshot_id)
    assert output.persist == []
    assert cluster[1].log_end_offset == 3


def test_the_smallest_snapshot_is_fetched_and_one_of_the_leaders_own_epoch() -> None:
    """Goal: the bounds themselves are valid. Method: one record of epoch 1, and epoch 5 of 5."""
    for snapshot_id in (OffsetAndEpoch(1, 1), OffsetAndEpoch(10, 5)):
        assert name_snapshot(following(), snapshot_id).persist == [BeginDownload(snapshot_id)]


def test_only_a_snapshot_below_the_high_watermark_is_a_refused_truncation() -> None:
    """Goal: the alarm of 279.4 sounds for lost records alone. Method: one record below, and at."""
    for offset, alarms in ((1, [TruncationRefused(1, 2)]), (2, [])):
        cluster = following(disk_with("1:a 1:b 1:c", high_watermark=2))
        output = name_snapshot(cluster, OffsetAndEpoch(offset, 1))
        assert [each for each in output.events if isinstance(each, TruncationRefused)] == alarms
        assert output.persist == []


def test_a_snapshot_without_a_record_is_not_fetched_by_an_empty_log() -> None:
    cluster = following()
    assert name_snapshot(cluster, OffsetAndEpoch(0, 3)).persist == []
    assert not cluster[1].is_downloading


def test_the_disk_slows_the_download_down() -> None:
    """Goal: bounded memory. Method: two unwritten chunks are the limit; then persist."""
    cluster = following()
    name_snapshot(cluster)
    cluster.slow_disks.add(1)
    chunk(cluster, size=100)
    requests = len(cluster.sent_by(1, FetchSnapshotRequest))
    output = chunk(cluster, size=100)
    assert len(cluster.sent_by(1, FetchSnapshotRequest)) == requests
    assert output.next_deadline_ms is not None
    cluster.persist(1)
    assert len(cluster.sent_by(1, FetchSnapshotRequest)) == requests + 1


def test_a_long_verification_does_not_look_like_a_silent_leader() -> None:
    """Goal: stay a follower while freezing. Method: a slow disk for longer than the fetch timer."""
    cluster = following()
    name_snapshot(cluster)
    cluster.slow_disks.add(1)
    for data in (b"abcd", b"abcd"):
        chunk(cluster, data)
        cluster.persist(1)
    chunk(cluster, b"ab")
    for _ in range(8):
        cluster.now_ms += 500
        cluster.tick(1)
        name_snapshot(cluster)
    assert cluster[1].role_name == "Follower"
    cluster.persist(1)
    assert cluster[1].log_end == SNAPSHOT


def test_a_candidate_installs_its_snapshot_only_when_it_is_one_no_longer() -> None:
    """Goal: a position once asked with never falls. Method: freeze during a candidacy."""
    cluster = following(disk_with("1:a 1:b"))
    cluster.isolate(1)
    name_snapshot(cluster)
    cluster.advance(2_300)
    asked_for = [each for each in cluster.sent_by(1, VoteRequest) if each.voter == key(3)][-1]
    granted = VoteResponse(asked_for.request_id, ErrorCode.NONE, 2, 5, granted=True)
    cluster.call(1, lambda node: node.receive(cluster.now_ms, 3, granted))
    assert cluster[1].role_name == "Candidate"
    frozen = SnapshotSealed(SNAPSHOT, (), 10)
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, frozen))
    assert cluster[1].log_end_offset == 2
    assert cluster[1].snapshots == ()
    follow(cluster, 2, 7)
    assert cluster[1].log_end == SNAPSHOT


def test_a_replica_far_behind_is_brought_forward_through_a_snapshot_end_to_end() -> None:
    """Goal: bootstrap by FetchSnapshot. Method: a follower away while the leader trims its log."""
    sizes = {"snapshot_chunk_bytes": 16, "observer_session_ms": 2_000, "high_watermark_delay_ms": 0}
    cluster = CoreCluster(config=QuorumConfig(**sizes))
    cluster.elect(1)
    cluster.crash(3)
    cluster.propose(1, 7)
    cluster.settle()
    snapshot = OffsetAndEpoch(9, 1)
    for node_id in (1, 2):
        cluster.members[node_id].add_snapshot(snapshot)
        cluster.call(
            node_id, lambda node: node.on_local_event(cluster.now_ms, SnapshotCreated(snapshot, 40))
        )
    cluster.advance(4_000)
    assert cluster[1].log_start == cluster[2].log_start == snapshot
    cluster.restart(3)
    cluster.advance(1_000)
    assert (cluster[3].log_start, cluster[3].log_end) == (snapshot, cluster[1].log_end)
    assert cluster[3].high_watermark == cluster[1].high_watermark

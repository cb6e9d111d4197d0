"""Slices of a download asked for ahead: order, loss, and what ends with the first of them."""

from __future__ import annotations

import pytest

from quorum.core.contract.local_events import RequestFailed
from quorum.core.contract.output import Output, WriteChunk
from quorum.core.contract.reasons import DisqualifiedReason
from quorum.core.following.chunk_requests import ask_ahead
from quorum.core.following.snapshot_transfer import poll_download
from quorum.core.messages.fetch_messages import FetchRequest
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest
from quorum.core.node.raft_node import RaftNode
from quorum.core.positions.download import Download
from quorum.errors import ErrorCode
from tests.support.download_steps import SNAPSHOT, asked, chunk, following, name_snapshot


def test_slices_are_asked_for_ahead_once_the_first_is_here() -> None:
    """Goal: hide the way there and back. Method: three requests allowed; count and place them."""
    cluster = following(slices=3)
    name_snapshot(cluster)
    assert [request.position for request in cluster.sent_by(1, FetchSnapshotRequest)] == [0]
    chunk(cluster, size=100)
    cluster.persist(1)
    requests = cluster.sent_by(1, FetchSnapshotRequest)
    # Two and not three: as many as `unwritten_chunks_max` in that test's configuration.
    asked_for = [(request.position, request.max_bytes) for request in requests]
    assert asked_for == [(0, 4), (4, 4), (8, 4)]


def positions(output: Output) -> list[int]:
    messages = [each.message for each in output.immediate]
    return [each.position for each in messages if isinstance(each, FetchSnapshotRequest)]


@pytest.mark.parametrize("allowed", [1, 2, 3, 4])
def test_as_many_slices_are_under_way_as_allowed_and_none_behind_the_end(allowed: int) -> None:
    """Goal: the bound is reached at once and kept. Method: the first two slices of two files."""
    for size, whole in ((100, [4, 8, 12, 16, 20]), (12, [4, 8])):
        cluster = following(slices=allowed, unwritten=10)
        name_snapshot(cluster)
        first = asked(cluster)
        assert positions(chunk(cluster, request=first, size=size)) == whole[:allowed]
        second = cluster.sent_by(1, FetchSnapshotRequest)[1]
        later = positions(chunk(cluster, request=second, size=size))
        assert later == whole[allowed : allowed + 1]


@pytest.mark.parametrize("loss", ["overtaken", "failed", "short"])
def test_a_slice_asked_for_ahead_that_comes_to_nothing_is_asked_for_again(loss: str) -> None:
    """Goal: no gap and no process pause. Method: spoil the request behind the first; finish."""
    cluster = following(slices=2)
    name_snapshot(cluster)
    chunk(cluster, size=10)
    first, ahead = cluster.sent_by(1, FetchSnapshotRequest)[-2:]
    assert (first.position, ahead.position) == (4, 8)
    data = b"abcd"
    if loss == "overtaken":
        chunk(cluster, b"ij", request=ahead, size=10)
    elif loss == "failed":
        failure = RequestFailed(2, ahead.request_id)
        cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, failure))
    else:
        data = b"ab"
    output = chunk(cluster, data, request=first, size=10)
    assert WriteChunk(SNAPSHOT, 4, data) in output.persist
    later = [
        request.position
        for request in cluster.sent_by(1, FetchSnapshotRequest)
        if request.request_id > ahead.request_id
    ]
    assert later[0] == 4 + len(data)


def test_slices_asked_for_ahead_end_with_the_first() -> None:
    """Goal: no bytes of an abandoned file. Method: a refusal, then the answer to the one ahead."""
    cluster = following(slices=2)
    name_snapshot(cluster)
    chunk(cluster, size=10)
    first, ahead = cluster.sent_by(1, FetchSnapshotRequest)[-2:]
    chunk(cluster, b"", request=first, error=ErrorCode.SNAPSHOT_NOT_FOUND)
    output = chunk(cluster, b"ij", request=ahead, size=10)
    assert output.persist == []
    assert cluster.sent_by(1, FetchRequest)[-1].request_id > ahead.request_id


def test_an_answer_that_comes_too_early_does_not_ask_again_at_once() -> None:
    """Goal: no request per round trip while the first answer is lost. Method: answer only those
    behind it, again and again."""
    cluster = following(slices=2)
    name_snapshot(cluster)
    chunk(cluster, size=10)
    ahead = cluster.sent_by(1, FetchSnapshotRequest)[-1]
    for _ in range(3):
        chunk(cluster, b"ij", request=cluster.sent_by(1, FetchSnapshotRequest)[-1], size=10)
    assert cluster.sent_by(1, FetchSnapshotRequest)[-1] == ahead


def disqualified(node: RaftNode, now_ms: int) -> Output:
    """What a lost divergence does, amid whatever is under way."""
    node._begin(now_ms).disqualify(DisqualifiedReason.FORMATTED_ANEW, "told to")
    return node._finish()


def test_nothing_is_asked_ahead_of_a_slice_that_waits_for_the_disk() -> None:
    """Goal: a request's timeout starts when it is sent. Method: a chunk is requested again while
    the disk has not yet written that this node is disqualified.
    """
    cluster = following(slices=3, unwritten=10)
    name_snapshot(cluster)
    chunk(cluster, size=100)
    lost = cluster.sent_by(1, FetchSnapshotRequest)[1]
    cluster.call(
        1, lambda node: node.on_local_event(cluster.now_ms, RequestFailed(2, lost.request_id))
    )
    cluster.now_ms += cluster.config.retry_backoff_ms
    cluster.slow_disks.add(1)
    cluster.call(1, lambda node: disqualified(node, cluster.now_ms))
    waiting = [each.message for each in cluster.members[1].promises]
    asked_for = [each.position for each in waiting if isinstance(each, FetchSnapshotRequest)]
    assert asked_for == [4]
    before = len(cluster.sent_by(1, FetchSnapshotRequest))
    cluster.persist(1)
    again = cluster.sent_by(1, FetchSnapshotRequest)[before:]
    assert sorted(each.position for each in again) == [4, 8, 12]


def test_without_a_request_or_a_download_there_is_nothing_to_ask_for() -> None:
    core = following(slices=3)[1]._core
    assert poll_download(core, 2)
    core.requests.end_flight()
    ask_ahead(core, Download(SNAPSHOT, core.epoch, position=4, size=100, chunk_bytes=4))
    assert core.requests.in_flight is None

"""Slices of a download asked for ahead: order, loss, and what ends with the first of them."""

from __future__ import annotations

import pytest

from quorum.core.fetch_messages import FetchRequest
from quorum.core.notices import RequestFailed
from quorum.core.output import WriteChunk
from quorum.core.snapshot_messages import FetchSnapshotRequest
from quorum.errors import ErrorCode
from tests.support.download_steps import SNAPSHOT, chunk, following, name_snapshot


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


@pytest.mark.parametrize("loss", ["overtaken", "failed", "short"])
def test_a_slice_asked_for_ahead_that_comes_to_nothing_is_asked_for_again(loss: str) -> None:
    """Goal: no gap and no standstill. Method: spoil the request behind the first; finish."""
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
        cluster.call(1, lambda node: node.notice(cluster.now_ms, failure))
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

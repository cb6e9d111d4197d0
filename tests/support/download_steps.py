"""Steps of a snapshot download at a core under test: a follower, and its leader's responses."""

from __future__ import annotations

from quorum.config import QuorumConfig
from quorum.core.contract.local_events import ConnectionRefused
from quorum.core.contract.output import (
    Output,
)
from quorum.core.messages.epoch_messages import BeginQuorumEpochRequest
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest, FetchSnapshotResponse
from quorum.errors import ErrorCode
from quorum.types import OffsetAndEpoch, SnapshotId
from simulation.harness.core_disk import Disk
from tests.support.core_cluster import CLUSTER, CoreCluster
from tests.support.core_disk import key

SNAPSHOT = OffsetAndEpoch(10, 3)


def following(
    disk: Disk | None = None, *, slices: int = 1, unwritten: int = 2, fetch_timeout_ms: int = 2000
) -> CoreCluster:
    """Node 1 follows leader 2 in epoch 5, with a Fetch under way."""
    config = QuorumConfig(
        snapshot_chunk_bytes=4,
        unwritten_chunks_max=unwritten,
        snapshot_requests_max=slices,
        fetch_timeout_ms=fetch_timeout_ms,
    )
    cluster = CoreCluster(disks={1: disk or Disk()}, config=config)
    follow(cluster, 2, 5)
    return cluster


def follow(cluster: CoreCluster, leader: int, epoch: int) -> None:
    """Let node 1 lose its leader, if any, and learn of another one."""
    cluster.call(
        1, lambda node: node.on_local_event(cluster.now_ms, ConnectionRefused(node.leader_id))
    )
    cluster.queue.clear()
    request = BeginQuorumEpochRequest(9, CLUSTER, key(1), key(leader), epoch)
    cluster.call(1, lambda node: node.receive(cluster.now_ms, leader, request))


def name_snapshot(
    cluster: CoreCluster, snapshot_id: SnapshotId = SNAPSHOT, leader: int = 2, epoch: int = 5
) -> Output:
    request = cluster.sent_by(1, FetchRequest)[-1]
    answer = FetchResponse(
        request.request_id, ErrorCode.NONE, leader, epoch, snapshot_id=snapshot_id
    )
    return cluster.call(1, lambda node: node.receive(cluster.now_ms, leader, answer))


def asked(cluster: CoreCluster) -> FetchSnapshotRequest:
    return cluster.sent_by(1, FetchSnapshotRequest)[-1]


def chunk(
    cluster: CoreCluster,
    data: bytes = b"abcd",
    request: FetchSnapshotRequest | None = None,
    *,
    sender: int | None = None,
    **fields: object,
) -> Output:
    """Answer a request, by default the newest, in the name of the leader that the answer names."""
    request = request or asked(cluster)
    values: dict[str, object] = {
        "error": ErrorCode.NONE,
        "leader_id": 2,
        "epoch": 5,
        "snapshot_id": request.snapshot_id,
        "size": 10,
        "position": request.position,
        "chunk": data,
        "file_digest": b"d",
    }
    values.update(fields)
    answer = FetchSnapshotResponse(request.request_id, **values)  # type: ignore[arg-type]
    by: int = values["leader_id"] if sender is None else sender  # type: ignore[assignment]
    return cluster.call(1, lambda node: node.receive(cluster.now_ms, by, answer))

"""Serve a FetchSnapshot that names several partitions: split the request and divide the bytes.

The core knows one partition, its own log. This module sends the core one request for each named
partition that is this log, and answers all other partitions with an error (KIP-630; 630.10 to
630.12).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from crc32c import crc32c

from quorum.core.messages.snapshot_messages import FetchSnapshotRequest, FetchSnapshotResponse
from quorum.errors import ErrorCode, PeerProtocolError
from quorum.transport import codec
from quorum.transport.answers import name_refusal
from quorum.transport.limits import SNAPSHOT_PARTITIONS_MAX
from quorum.types import METADATA_PARTITION, METADATA_TOPIC, NO_NODE, ReplicaKey
from quorum.v1 import raft_pb2

Ask = Callable[[FetchSnapshotRequest], Awaitable[FetchSnapshotResponse]]
"""Sends one request to the core; its request id is not used."""


def response_budget(asked_bytes: int, server_bytes_max: int) -> int:
    """Return the bytes that one answer may carry: the smaller of the request's and our own limit.

    ``asked_bytes`` of 0, the value of an absent field, means no limit.
    """
    return min(asked_bytes or server_bytes_max, server_bytes_max)


def divide_budget(budget_bytes: int, left_bytes: Sequence[int]) -> list[int]:
    """Divide a budget among partitions by the bytes that each has left (630.11).

    Returns:
        Bytes per partition: at most what it has left, and at least the smaller of that and
        the average. Short partitions leave their rest to the others. The sum is at most the budget.
    """
    shares = [0] * len(left_bytes)
    remaining = budget_bytes
    ascending = sorted(range(len(left_bytes)), key=left_bytes.__getitem__)
    for served, index in enumerate(ascending):
        shares[index] = min(left_bytes[index], remaining // (len(ascending) - served))
        remaining -= shares[index]
    return shares


@dataclass(slots=True)
class _Chunk:
    """One named partition: the request to the core and the answer so far."""

    topic: int
    partition: int
    request: FetchSnapshotRequest | None
    response: FetchSnapshotResponse | None = None

    @property
    def left_bytes(self) -> int:
        """Return the bytes of the file behind the chunk received so far."""
        found = self.response
        if found is None or found.error is not ErrorCode.NONE:
            return 0
        return max(0, found.size - found.position - len(found.chunk))


def _take_apart(value: raft_pb2.FetchSnapshotRequest, cluster_id: str) -> list[_Chunk]:
    if value.max_bytes < 0:
        raise PeerProtocolError(f"FetchSnapshot for at most {value.max_bytes} bytes")
    count = sum(len(topic.partitions) for topic in value.topics)
    if not 0 < count <= SNAPSHOT_PARTITIONS_MAX:
        raise PeerProtocolError(
            f"FetchSnapshot of {count} partitions, not 1 to {SNAPSHOT_PARTITIONS_MAX}"
        )
    replica_id = value.replica_id if value.HasField("replica_id") else NO_NODE
    replica = ReplicaKey(replica_id, codec.uuid_from_pb(value.replica_directory_id))
    chunks: list[_Chunk] = []
    for topic_index, topic in enumerate(value.topics):
        for wanted in topic.partitions:
            request = None
            if topic.name == METADATA_TOPIC and wanted.partition == METADATA_PARTITION:
                request = FetchSnapshotRequest(
                    request_id=0,
                    cluster_id=cluster_id,
                    replica=replica,
                    epoch=wanted.current_leader_epoch,
                    snapshot_id=codec.position_from_pb(wanted.snapshot_id),
                    position=wanted.position,
                    max_bytes=0,
                    read_round=codec.round_from_pb(value.read_round),
                )
            chunks.append(_Chunk(topic_index, wanted.partition, request))
    return chunks


async def serve_fetch_snapshot(
    value: raft_pb2.FetchSnapshotRequest, cluster_id: str, ask: Ask, *, bytes_max: int
) -> raft_pb2.FetchSnapshotResponse:
    """Answer a FetchSnapshot by asking the core about each named chunk of its log.

    A first pass gives every chunk the average share and reports how much each has left. A second
    pass distributes what short chunks did not use. ``cluster_id`` is ours; a request without one
    passes. The answer carries at most ``bytes_max`` bytes of checkpoints.

    Raises:
        PeerProtocolError: No or too many partitions, a negative limit, a malformed identity.
    """
    chunks = _take_apart(value, codec.cluster_id_from_pb(value.cluster_id) or cluster_id)
    known = [wanted for wanted in chunks if wanted.request is not None]
    if value.cluster_id not in ("", cluster_id):
        return _whole_error(ErrorCode.INCONSISTENT_CLUSTER_ID)
    budget = response_budget(value.max_bytes, bytes_max)
    average = max(1, budget // max(1, len(known)))
    for wanted in known:
        await _extend(wanted, average, ask)
        if wanted.response and wanted.response.error is ErrorCode.INCONSISTENT_CLUSTER_ID:
            return _whole_error(wanted.response.error)
    used = sum(len(wanted.response.chunk) for wanted in known if wanted.response)
    shares = divide_budget(max(0, budget - used), [wanted.left_bytes for wanted in known])
    for wanted, share in zip(known, shares, strict=True):
        if share:
            await _extend(wanted, share, ask)
    return _put_together(value, chunks)


async def _extend(wanted: _Chunk, share: int, ask: Ask) -> None:
    """Ask for ``share`` more bytes behind the chunk received so far."""
    request, found = wanted.request, wanted.response
    if request is None:
        return
    have = found.chunk if found else b""
    more = await ask(replace(request, position=request.position + len(have), max_bytes=share))
    if found is None:
        wanted.response = more
        return
    # If the file was deleted or replaced in between, the first chunk is the answer.
    expected = (ErrorCode.NONE, found.size, found.position + len(have))
    if (more.error, more.size, more.position) == expected:
        wanted.response = replace(
            found, chunk=have + more.chunk, chunk_crc=crc32c(more.chunk, found.chunk_crc)
        )


def _whole_error(error: ErrorCode) -> raft_pb2.FetchSnapshotResponse:
    name_refusal(FetchSnapshotRequest, error)
    return raft_pb2.FetchSnapshotResponse(error_code=codec.error_to_pb(error))


def _put_together(
    value: raft_pb2.FetchSnapshotRequest, chunks: Sequence[_Chunk]
) -> raft_pb2.FetchSnapshotResponse:
    answer = raft_pb2.FetchSnapshotResponse(
        topics=[raft_pb2.FetchSnapshotTopicData(name=topic.name) for topic in value.topics]
    )
    for wanted in chunks:
        answer.topics[wanted.topic].partitions.append(_partition_to_pb(wanted))
        if wanted.response is not None:
            answer.read_round.CopyFrom(codec.round_to_pb(wanted.response.read_round))
    return answer


def _partition_to_pb(wanted: _Chunk) -> raft_pb2.FetchSnapshotPartitionData:
    found = wanted.response
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if found is None else found.error
    name_refusal(FetchSnapshotRequest, error)
    if found is None:
        return raft_pb2.FetchSnapshotPartitionData(
            partition=wanted.partition,
            error_code=codec.error_to_pb(error),
        )
    return raft_pb2.FetchSnapshotPartitionData(
        partition=wanted.partition,
        error_code=codec.error_to_pb(error),
        snapshot_id=codec.position_to_pb(found.snapshot_id),
        current_leader=codec.leader_to_pb(found.leader_id, found.epoch),
        size=found.size,
        position=found.position,
        unaligned_records=found.chunk,
        chunk_crc=found.chunk_crc,
        file_digest=found.file_digest,
        leader_endpoints=codec.endpoints_to_pb(found.leader_endpoints),
    )

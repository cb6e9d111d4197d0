"""Protobuf of ChainDigest <-> core messages; the other requests are in ``codec``."""

from __future__ import annotations

from collections.abc import Iterable

from quorum.core.messages.chain_messages import (
    CHAIN_OFFSETS_MAX,
    ChainDigestRequest,
    ChainDigestResponse,
)
from quorum.errors import PeerProtocolError
from quorum.transport.codec import (
    cluster_id_from_pb,
    endpoints_from_pb,
    endpoints_to_pb,
    error_from_pb,
    error_to_pb,
    key_from_pb,
    key_to_pb,
    leader_to_pb,
)
from quorum.transport.limits import DIGEST_BYTES_MAX
from quorum.types import NO_NODE, DigestAt, ReplicaKey
from quorum.v1 import raft_pb2


def chain_request_to_pb(message: ChainDigestRequest) -> raft_pb2.ChainDigestRequest:
    """A question for digests."""
    return raft_pb2.ChainDigestRequest(
        cluster_id=message.cluster_id,
        replica=key_to_pb(message.replica),
        epoch=message.epoch,
        offsets=message.offsets,
    )


def chain_request_from_pb(
    value: raft_pb2.ChainDigestRequest, request_id: int
) -> ChainDigestRequest:
    """Inverse of ``chain_request_to_pb``; without a replica it is a tool's.

    Raises:
        PeerProtocolError: Too many offsets.
    """
    return ChainDigestRequest(
        request_id=request_id,
        cluster_id=cluster_id_from_pb(value.cluster_id),
        replica=key_from_pb(value.replica) if value.HasField("replica") else ReplicaKey(NO_NODE),
        epoch=value.epoch,
        offsets=_offsets(value.offsets),
    )


def chain_response_to_pb(message: ChainDigestResponse) -> raft_pb2.ChainDigestResponse:
    """Answer to ChainDigest; ``own`` is local and does not travel."""
    return raft_pb2.ChainDigestResponse(
        error_code=error_to_pb(message.error),
        current_leader=leader_to_pb(message.leader_id, message.epoch),
        offsets=message.offsets,
        points=[
            raft_pb2.DigestAt(offset=point.offset, digest=point.value) for point in message.points
        ],
        leader_endpoints=endpoints_to_pb(message.leader_endpoints),
        replica=key_to_pb(message.replica) if message.replica is not None else None,
    )


def chain_response_from_pb(
    value: raft_pb2.ChainDigestResponse, request_id: int
) -> ChainDigestResponse:
    """Inverse of ``chain_response_to_pb``.

    Raises:
        PeerProtocolError: No current leader, too many digests, or one of impossible size.
    """
    if not value.HasField("current_leader"):
        raise PeerProtocolError("ChainDigest response: current_leader is missing")
    if len(value.points) > CHAIN_OFFSETS_MAX:
        raise PeerProtocolError(f"{len(value.points)} digests, more than {CHAIN_OFFSETS_MAX}")
    points = tuple(DigestAt(point.offset, point.digest) for point in value.points)
    for point in points:
        if len(point.value) > DIGEST_BYTES_MAX:
            raise PeerProtocolError(f"digest of {len(point.value)} bytes")
    return ChainDigestResponse(
        request_id=request_id,
        error=error_from_pb(value.error_code),
        leader_id=value.current_leader.leader_id,
        epoch=value.current_leader.leader_epoch,
        offsets=_offsets(value.offsets),
        points=points,
        leader_endpoints=endpoints_from_pb(value.leader_endpoints),
        replica=key_from_pb(value.replica) if value.HasField("replica") else None,
    )


def _offsets(values: Iterable[int]) -> tuple[int, ...]:
    offsets = tuple(values)
    if len(offsets) > CHAIN_OFFSETS_MAX:
        raise PeerProtocolError(f"{len(offsets)} offsets, more than {CHAIN_OFFSETS_MAX}")
    return offsets

"""Protobuf messages of ``quorum.v1`` <-> core messages, one pair of functions per type.

Total in both directions: every well-formed protobuf message becomes a core message or a
``PeerProtocolError``, and every core message whose numbers fit their fields becomes protobuf.
What the numbers *mean* is evaluated by the core; here only shape counts: required parts present,
identities of 16 bytes, bounded lists. Multi-partition FetchSnapshot is taken apart in
``quorum.transport.snapshots``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from quorum.core.messages.epoch_messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
)
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.read_messages import ReadRound
from quorum.core.messages.vote_messages import VoteRequest, VoteResponse
from quorum.errors import ErrorCode, PeerProtocolError
from quorum.transport import version_codec
from quorum.transport.limits import (
    CLUSTER_ID_BYTES_MAX,
    DIGEST_BYTES_MAX,
    ENDPOINTS_MAX,
    HOST_BYTES_MAX,
    SUCCESSORS_MAX,
)
from quorum.transport.packing import error_from_number
from quorum.types import NO_NODE, ZERO_UUID, Endpoint, OffsetAndEpoch, ReplicaKey, Uuid
from quorum.v1 import common_pb2, raft_pb2

_UNCHECKED = ReplicaKey(NO_NODE)
_PORT_MAX = 65535


def error_to_pb(code: ErrorCode) -> common_pb2.ErrorCode:
    """Protobuf's enums are open: the number itself is the value."""
    return cast("common_pb2.ErrorCode", int(code))


def error_from_pb(value: common_pb2.ErrorCode) -> ErrorCode:
    """The code; one that this release does not know is UNKNOWN_SERVER_ERROR."""
    return error_from_number(int(value))


def uuid_from_pb(value: bytes) -> Uuid:
    """16 bytes, or the zero uuid when absent.

    Raises:
        PeerProtocolError: Any other length.
    """
    if not value:
        return ZERO_UUID
    if len(value) != len(ZERO_UUID):
        raise PeerProtocolError(f"a directory id has 16 bytes, not {len(value)}")
    return value


def cluster_id_from_pb(value: str) -> str:
    """The cluster id itself, bounded.

    Raises:
        PeerProtocolError: Too long.
    """
    if len(value) > CLUSTER_ID_BYTES_MAX:
        raise PeerProtocolError(f"cluster id of {len(value)} characters")
    return value


def key_to_pb(key: ReplicaKey) -> common_pb2.ReplicaKey:
    """A key with an unknown directory leaves that field empty."""
    known = key.directory_id != ZERO_UUID
    return common_pb2.ReplicaKey(id=key.id, directory_id=key.directory_id if known else b"")


def key_from_pb(value: common_pb2.ReplicaKey) -> ReplicaKey:
    """Inverse of ``key_to_pb``.

    Raises:
        PeerProtocolError: The directory id has neither 0 nor 16 bytes.
    """
    return ReplicaKey(value.id, uuid_from_pb(value.directory_id))


def position_to_pb(value: OffsetAndEpoch) -> common_pb2.OffsetAndEpoch:
    """A position; absent ones are absent messages."""
    return common_pb2.OffsetAndEpoch(offset=value.offset, epoch=value.epoch)


def position_from_pb(value: common_pb2.OffsetAndEpoch) -> OffsetAndEpoch:
    """Inverse of ``position_to_pb``."""
    return OffsetAndEpoch(value.offset, value.epoch)


def round_to_pb(value: ReadRound) -> raft_pb2.ReadRound:
    """A read round."""
    return raft_pb2.ReadRound(epoch=value.epoch, number=value.number)


def round_from_pb(value: raft_pb2.ReadRound) -> ReadRound:
    """Inverse of ``round_to_pb``; an absent one is the round before any."""
    return ReadRound(value.epoch, value.number)


def leader_to_pb(leader_id: int, epoch: int) -> common_pb2.LeaderAndEpoch:
    """Leader (-1: not known) and epoch."""
    return common_pb2.LeaderAndEpoch(leader_id=leader_id, leader_epoch=epoch)


def endpoints_to_pb(endpoints: Iterable[Endpoint]) -> list[common_pb2.Endpoint]:
    """Endpoints in the order given."""
    return [common_pb2.Endpoint(name=e.name, host=e.host, port=e.port) for e in endpoints]


def endpoints_from_pb(values: Iterable[common_pb2.Endpoint]) -> tuple[Endpoint, ...]:
    """Inverse of ``endpoints_to_pb``.

    Raises:
        PeerProtocolError: Too many, too long, or a port that is none.
    """
    endpoints = tuple(Endpoint(value.name, value.host, value.port) for value in values)
    if len(endpoints) > ENDPOINTS_MAX:
        raise PeerProtocolError(f"{len(endpoints)} endpoints, more than {ENDPOINTS_MAX}")
    for endpoint in endpoints:
        if endpoint.port > _PORT_MAX:
            raise PeerProtocolError(f"port {endpoint.port} of {endpoint.host!r}")
        if len(endpoint.host) > HOST_BYTES_MAX or len(endpoint.name) > HOST_BYTES_MAX:
            raise PeerProtocolError(f"endpoint name or host above {HOST_BYTES_MAX} characters")
    return endpoints


def require(present: bool, what: str) -> None:  # noqa: FBT001 - reads as a statement
    """Raise PeerProtocolError unless ``present``."""
    if not present:
        raise PeerProtocolError(f"{what} is missing")


def vote_request_to_pb(message: VoteRequest) -> raft_pb2.VoteRequest:
    """Vote or pre-vote."""
    return raft_pb2.VoteRequest(
        cluster_id=message.cluster_id,
        candidate=key_to_pb(message.candidate),
        voter=key_to_pb(message.voter),
        epoch=message.epoch,
        last=position_to_pb(message.last),
        pre_vote=message.pre_vote,
    )


def vote_request_from_pb(value: raft_pb2.VoteRequest, request_id: int) -> VoteRequest:
    """Inverse of ``vote_request_to_pb``; an absent receiver is unchecked.

    Raises:
        PeerProtocolError: No candidate or no last position.
    """
    require(value.HasField("candidate"), "Vote: candidate")
    require(value.HasField("last"), "Vote: last position")
    return VoteRequest(
        request_id=request_id,
        cluster_id=cluster_id_from_pb(value.cluster_id),
        candidate=key_from_pb(value.candidate),
        voter=key_from_pb(value.voter) if value.HasField("voter") else _UNCHECKED,
        epoch=value.epoch,
        last=position_from_pb(value.last),
        pre_vote=value.pre_vote,
    )


def vote_response_to_pb(message: VoteResponse) -> raft_pb2.VoteResponse:
    """Answer to Vote."""
    return raft_pb2.VoteResponse(
        error_code=error_to_pb(message.error),
        current_leader=leader_to_pb(message.leader_id, message.epoch),
        granted=message.granted,
        leader_endpoints=endpoints_to_pb(message.leader_endpoints),
    )


def vote_response_from_pb(value: raft_pb2.VoteResponse, request_id: int) -> VoteResponse:
    """Inverse of ``vote_response_to_pb``.

    Raises:
        PeerProtocolError: No current leader, which carries the epoch.
    """
    require(value.HasField("current_leader"), "Vote response: current_leader")
    return VoteResponse(
        request_id=request_id,
        error=error_from_pb(value.error_code),
        leader_id=value.current_leader.leader_id,
        epoch=value.current_leader.leader_epoch,
        granted=value.granted,
        leader_endpoints=endpoints_from_pb(value.leader_endpoints),
    )


def begin_request_to_pb(message: BeginQuorumEpochRequest) -> raft_pb2.BeginQuorumEpochRequest:
    """A leader's announcement."""
    return raft_pb2.BeginQuorumEpochRequest(
        cluster_id=message.cluster_id,
        voter=key_to_pb(message.voter),
        leader=key_to_pb(message.leader),
        epoch=message.epoch,
        leader_endpoints=endpoints_to_pb(message.leader_endpoints),
    )


def begin_request_from_pb(
    value: raft_pb2.BeginQuorumEpochRequest, request_id: int
) -> BeginQuorumEpochRequest:
    """Inverse of ``begin_request_to_pb``.

    Raises:
        PeerProtocolError: No leader.
    """
    require(value.HasField("leader"), "BeginQuorumEpoch: leader")
    return BeginQuorumEpochRequest(
        request_id=request_id,
        cluster_id=cluster_id_from_pb(value.cluster_id),
        voter=key_from_pb(value.voter) if value.HasField("voter") else _UNCHECKED,
        leader=key_from_pb(value.leader),
        epoch=value.epoch,
        leader_endpoints=endpoints_from_pb(value.leader_endpoints),
    )


def begin_response_to_pb(message: BeginQuorumEpochResponse) -> raft_pb2.BeginQuorumEpochResponse:
    """Answer to BeginQuorumEpoch."""
    return raft_pb2.BeginQuorumEpochResponse(
        error_code=error_to_pb(message.error),
        current_leader=leader_to_pb(message.leader_id, message.epoch),
        leader_endpoints=endpoints_to_pb(message.leader_endpoints),
        supported=version_codec.ranges_to_pb(message.supported),
    )


def begin_response_from_pb(
    value: raft_pb2.BeginQuorumEpochResponse, request_id: int
) -> BeginQuorumEpochResponse:
    """Inverse of ``begin_response_to_pb``.

    Raises:
        PeerProtocolError: No current leader, or more version ranges than there can be.
    """
    require(value.HasField("current_leader"), "BeginQuorumEpoch response: current_leader")
    return BeginQuorumEpochResponse(
        request_id=request_id,
        error=error_from_pb(value.error_code),
        leader_id=value.current_leader.leader_id,
        epoch=value.current_leader.leader_epoch,
        leader_endpoints=endpoints_from_pb(value.leader_endpoints),
        supported=version_codec.ranges_from_pb(value.supported),
    )


def end_request_to_pb(message: EndQuorumEpochRequest) -> raft_pb2.EndQuorumEpochRequest:
    """A leader's resignation."""
    return raft_pb2.EndQuorumEpochRequest(
        cluster_id=message.cluster_id,
        leader=key_to_pb(message.leader),
        epoch=message.epoch,
        preferred_successors=[key_to_pb(key) for key in message.preferred_successors],
        leader_endpoints=endpoints_to_pb(message.leader_endpoints),
        campaign_now=message.campaign_now,
    )


def end_request_from_pb(
    value: raft_pb2.EndQuorumEpochRequest, request_id: int
) -> EndQuorumEpochRequest:
    """Inverse of ``end_request_to_pb``.

    Raises:
        PeerProtocolError: No leader, or more than ``SUCCESSORS_MAX`` successors.
    """
    require(value.HasField("leader"), "EndQuorumEpoch: leader")
    if len(value.preferred_successors) > SUCCESSORS_MAX:
        raise PeerProtocolError(f"{len(value.preferred_successors)} preferred successors")
    return EndQuorumEpochRequest(
        request_id=request_id,
        cluster_id=cluster_id_from_pb(value.cluster_id),
        leader=key_from_pb(value.leader),
        epoch=value.epoch,
        preferred_successors=tuple(key_from_pb(key) for key in value.preferred_successors),
        leader_endpoints=endpoints_from_pb(value.leader_endpoints),
        campaign_now=value.campaign_now,
    )


def end_response_to_pb(message: EndQuorumEpochResponse) -> raft_pb2.EndQuorumEpochResponse:
    """Answer to EndQuorumEpoch."""
    return raft_pb2.EndQuorumEpochResponse(
        error_code=error_to_pb(message.error),
        current_leader=leader_to_pb(message.leader_id, message.epoch),
        leader_endpoints=endpoints_to_pb(message.leader_endpoints),
    )


def end_response_from_pb(
    value: raft_pb2.EndQuorumEpochResponse, request_id: int
) -> EndQuorumEpochResponse:
    """Inverse of ``end_response_to_pb``.

    Raises:
        PeerProtocolError: No current leader.
    """
    require(value.HasField("current_leader"), "EndQuorumEpoch response: current_leader")
    return EndQuorumEpochResponse(
        request_id=request_id,
        error=error_from_pb(value.error_code),
        leader_id=value.current_leader.leader_id,
        epoch=value.current_leader.leader_epoch,
        leader_endpoints=endpoints_from_pb(value.leader_endpoints),
    )


def fetch_request_from_pb(value: raft_pb2.FetchRequest, request_id: int) -> FetchRequest:
    """A probe's or a foreign client's Fetch; without ``replica`` it is a plain consumer's.

    Raises:
        PeerProtocolError: A field of impossible size.
    """
    if len(value.digest) > DIGEST_BYTES_MAX:
        raise PeerProtocolError(f"digest of {len(value.digest)} bytes")
    return FetchRequest(
        request_id=request_id,
        cluster_id=cluster_id_from_pb(value.cluster_id),
        replica=key_from_pb(value.replica) if value.HasField("replica") else _UNCHECKED,
        epoch=value.current_leader_epoch,
        fetch_offset=value.fetch_offset,
        last_fetched_epoch=value.last_fetched_epoch,
        high_watermark=value.high_watermark if value.HasField("high_watermark") else -1,
        max_wait_ms=value.max_wait_ms,
        max_bytes=value.max_bytes,
        read_round=round_from_pb(value.read_round),
        digest=value.digest,
    )


def fetch_response_to_pb(message: FetchResponse) -> raft_pb2.FetchResponse:
    """Answer to a unary Fetch."""
    return raft_pb2.FetchResponse(
        error_code=error_to_pb(message.error),
        current_leader=leader_to_pb(message.leader_id, message.epoch),
        high_watermark=message.high_watermark if message.high_watermark >= 0 else None,
        log_start_offset=message.log_start_offset,
        diverging=position_to_pb(message.diverging) if message.diverging else None,
        snapshot_id=position_to_pb(message.snapshot_id) if message.snapshot_id else None,
        records=message.records,
        read_round=round_to_pb(message.read_round),
        leader_endpoints=endpoints_to_pb(message.leader_endpoints),
        leader_age_ms=message.leader_age_ms if message.leader_age_ms >= 0 else None,
    )

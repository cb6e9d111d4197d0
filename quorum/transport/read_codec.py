"""ReadPosition as protobuf: the two functions per type that ``codec`` has for the others.

See: ``codec`` for what shape is checked here and what is the core's to evaluate.
"""

from __future__ import annotations

from quorum.core.messages.read_messages import ReadPositionRequest, ReadPositionResponse
from quorum.errors import PeerProtocolError
from quorum.transport import codec
from quorum.v1 import raft_pb2


def read_position_request_to_pb(message: ReadPositionRequest) -> raft_pb2.ReadPositionRequest:
    """A replica's question for a read position."""
    return raft_pb2.ReadPositionRequest(
        cluster_id=message.cluster_id,
        replica=codec.key_to_pb(message.replica),
        epoch=message.epoch,
    )


def read_position_request_from_pb(
    value: raft_pb2.ReadPositionRequest, request_id: int
) -> ReadPositionRequest:
    """Inverse of ``read_position_request_to_pb``.

    Raises:
        PeerProtocolError: No replica.
    """
    if not value.HasField("replica"):
        raise PeerProtocolError("ReadPosition: replica is missing")
    return ReadPositionRequest(
        request_id=request_id,
        cluster_id=codec.cluster_id_from_pb(value.cluster_id),
        replica=codec.key_from_pb(value.replica),
        epoch=value.epoch,
    )


def read_position_response_to_pb(message: ReadPositionResponse) -> raft_pb2.ReadPositionResponse:
    """The answer; an absent position is left out."""
    return raft_pb2.ReadPositionResponse(
        error_code=codec.error_to_pb(message.error),
        current_leader=codec.leader_to_pb(message.leader_id, message.epoch),
        read_offset=message.read_offset if message.read_offset != -1 else None,
        leader_endpoints=codec.endpoints_to_pb(message.leader_endpoints),
    )


def read_position_response_from_pb(
    value: raft_pb2.ReadPositionResponse, request_id: int
) -> ReadPositionResponse:
    """Inverse of ``read_position_response_to_pb``.

    Raises:
        PeerProtocolError: No current leader, which carries the epoch.
    """
    if not value.HasField("current_leader"):
        raise PeerProtocolError("ReadPosition response: current_leader is missing")
    return ReadPositionResponse(
        request_id=request_id,
        error=codec.error_from_pb(value.error_code),
        leader_id=value.current_leader.leader_id,
        epoch=value.current_leader.leader_epoch,
        read_offset=value.read_offset if value.HasField("read_offset") else -1,
        leader_endpoints=codec.endpoints_from_pb(value.leader_endpoints),
    )

"""Founding messages of ``quorum.v1`` <-> core messages; ``codec`` has the other types."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quorum.core.messages.bootstrap_messages import FoundingRequest, FoundingResponse
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
    require,
    uuid_from_pb,
)
from quorum.transport.limits import SUCCESSORS_MAX
from quorum.types import NO_NODE, ZERO_UUID, ReplicaKey, Uuid
from quorum.v1 import raft_pb2


def founding_request_to_pb(message: FoundingRequest) -> raft_pb2.FoundingRequest:
    """A bootstrap voter's question."""
    return raft_pb2.FoundingRequest(
        cluster_id=message.cluster_id,
        sender=key_to_pb(message.sender),
        voter=key_to_pb(message.voter),
        epoch=message.epoch,
        life_id=message.life_id,
        roster=_roster_to_pb(message.roster),
    )


def founding_request_from_pb(value: raft_pb2.FoundingRequest, request_id: int) -> FoundingRequest:
    """Inverse of ``founding_request_to_pb``.

    Raises:
        PeerProtocolError: No sender, or a roster too long or with a life id of another size.
    """
    require(value.HasField("sender"), "Founding: sender")
    return FoundingRequest(
        request_id=request_id,
        cluster_id=cluster_id_from_pb(value.cluster_id),
        sender=key_from_pb(value.sender),
        voter=key_from_pb(value.voter) if value.HasField("voter") else ReplicaKey(NO_NODE),
        epoch=value.epoch,
        life_id=uuid_from_pb(value.life_id),
        roster=_roster_from_pb(value.roster),
    )


def founding_response_to_pb(message: FoundingResponse) -> raft_pb2.FoundingResponse:
    """Answer to a bootstrap voter's question."""
    return raft_pb2.FoundingResponse(
        error_code=error_to_pb(message.error),
        current_leader=leader_to_pb(message.leader_id, message.epoch),
        life_id=message.life_id if message.life_id != ZERO_UUID else b"",
        roster=_roster_to_pb(message.roster),
        leader_endpoints=endpoints_to_pb(message.leader_endpoints),
    )


def founding_response_from_pb(
    value: raft_pb2.FoundingResponse, request_id: int
) -> FoundingResponse:
    """Inverse of ``founding_response_to_pb``.

    Raises:
        PeerProtocolError: No current leader, or a malformed roster.
    """
    require(value.HasField("current_leader"), "Founding response: current_leader")
    return FoundingResponse(
        request_id=request_id,
        error=error_from_pb(value.error_code),
        leader_id=value.current_leader.leader_id,
        epoch=value.current_leader.leader_epoch,
        life_id=uuid_from_pb(value.life_id),
        roster=_roster_from_pb(value.roster),
        leader_endpoints=endpoints_from_pb(value.leader_endpoints),
    )


def _roster_to_pb(roster: Iterable[tuple[int, Uuid]]) -> list[raft_pb2.Life]:
    return [raft_pb2.Life(id=node_id, life_id=life_id) for node_id, life_id in roster]


def _roster_from_pb(values: Sequence[raft_pb2.Life]) -> tuple[tuple[int, Uuid], ...]:
    if len(values) > SUCCESSORS_MAX:
        raise PeerProtocolError(f"a roster of {len(values)} voters")
    return tuple((value.id, uuid_from_pb(value.life_id)) for value in values)

"""Bootstrap messages of ``quorum.v1`` <-> core messages; ``codec`` has the other types."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quorum.core.messages.bootstrap_messages import BootstrapRequest, BootstrapResponse
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


def bootstrap_request_to_pb(message: BootstrapRequest) -> raft_pb2.BootstrapRequest:
    """A bootstrap voter's question."""
    return raft_pb2.BootstrapRequest(
        cluster_id=message.cluster_id,
        sender=key_to_pb(message.sender),
        voter=key_to_pb(message.voter),
        epoch=message.epoch,
        incarnation_id=message.incarnation_id,
        voter_list=_voter_list_to_pb(message.voter_list),
    )


def bootstrap_request_from_pb(
    value: raft_pb2.BootstrapRequest, request_id: int
) -> BootstrapRequest:
    """Inverse of ``bootstrap_request_to_pb``.

    Raises:
        PeerProtocolError: No sender, or a voter list too long or with an incarnation id of another
            size.
    """
    require(value.HasField("sender"), "Bootstrap: sender")
    return BootstrapRequest(
        request_id=request_id,
        cluster_id=cluster_id_from_pb(value.cluster_id),
        sender=key_from_pb(value.sender),
        voter=key_from_pb(value.voter) if value.HasField("voter") else ReplicaKey(NO_NODE),
        epoch=value.epoch,
        incarnation_id=uuid_from_pb(value.incarnation_id),
        voter_list=_voter_list_from_pb(value.voter_list),
    )


def bootstrap_response_to_pb(message: BootstrapResponse) -> raft_pb2.BootstrapResponse:
    """Answer to a bootstrap voter's question."""
    return raft_pb2.BootstrapResponse(
        error_code=error_to_pb(message.error),
        current_leader=leader_to_pb(message.leader_id, message.epoch),
        incarnation_id=message.incarnation_id if message.incarnation_id != ZERO_UUID else b"",
        voter_list=_voter_list_to_pb(message.voter_list),
        leader_endpoints=endpoints_to_pb(message.leader_endpoints),
    )


def bootstrap_response_from_pb(
    value: raft_pb2.BootstrapResponse, request_id: int
) -> BootstrapResponse:
    """Inverse of ``bootstrap_response_to_pb``.

    Raises:
        PeerProtocolError: No current leader, or a malformed voter list.
    """
    require(value.HasField("current_leader"), "Bootstrap response: current_leader")
    return BootstrapResponse(
        request_id=request_id,
        error=error_from_pb(value.error_code),
        leader_id=value.current_leader.leader_id,
        epoch=value.current_leader.leader_epoch,
        incarnation_id=uuid_from_pb(value.incarnation_id),
        voter_list=_voter_list_from_pb(value.voter_list),
        leader_endpoints=endpoints_from_pb(value.leader_endpoints),
    )


def _voter_list_to_pb(voter_list: Iterable[tuple[int, Uuid]]) -> list[raft_pb2.Incarnation]:
    return [
        raft_pb2.Incarnation(id=node_id, incarnation_id=incarnation_id)
        for node_id, incarnation_id in voter_list
    ]


def _voter_list_from_pb(values: Sequence[raft_pb2.Incarnation]) -> tuple[tuple[int, Uuid], ...]:
    if len(values) > SUCCESSORS_MAX:
        raise PeerProtocolError(f"a voter list of {len(values)} voters")
    return tuple((value.id, uuid_from_pb(value.incarnation_id)) for value in values)

"""Requests about a replica's own voter entry as protobuf, and their one answer.

See: ``codec`` for what shape is checked here and what is the core's to evaluate.
"""

from __future__ import annotations

from typing import Final

from quorum.core.messages.voter_messages import (
    AddVoterRequest,
    RemoveVoterRequest,
    UpdateVoterRequest,
    VoterChangeResponse,
)
from quorum.errors import PeerProtocolError
from quorum.transport import codec
from quorum.types import Voter
from quorum.v1 import raft_pb2

MESSAGE_CHARACTERS_MAX: Final = 1024
"""What a response may say to humans; more is cut off by its sender and refused by its receiver."""


def voter_to_pb(voter: Voter) -> raft_pb2.VoterEntry:
    """A voter without the tagged fields of its entry on disk."""
    return raft_pb2.VoterEntry(
        key=codec.key_to_pb(voter.key),
        endpoints=codec.endpoints_to_pb(voter.endpoints),
        kraft_version_min=voter.min_supported_version,
        kraft_version_max=voter.max_supported_version,
    )


def voter_from_pb(value: raft_pb2.VoterEntry) -> Voter:
    """Inverse of ``voter_to_pb``.

    Raises:
        PeerProtocolError: No key.
    """
    if not value.HasField("key"):
        raise PeerProtocolError("voter entry: key is missing")
    return Voter(
        codec.key_from_pb(value.key),
        codec.endpoints_from_pb(value.endpoints),
        value.kraft_version_min,
        value.kraft_version_max,
    )


def _entry_in(value: raft_pb2.UpdateOwnVoterRequest | raft_pb2.AddOwnVoterRequest) -> Voter:
    if not value.HasField("voter"):
        raise PeerProtocolError(f"{value.DESCRIPTOR.name}: voter is missing")
    return voter_from_pb(value.voter)


def update_request_to_pb(message: UpdateVoterRequest) -> raft_pb2.UpdateOwnVoterRequest:
    """A voter's new entry."""
    return raft_pb2.UpdateOwnVoterRequest(
        cluster_id=message.cluster_id, voter=voter_to_pb(message.voter), epoch=message.epoch
    )


def update_request_from_pb(
    value: raft_pb2.UpdateOwnVoterRequest, request_id: int
) -> UpdateVoterRequest:
    """Inverse of ``update_request_to_pb``.

    Raises:
        PeerProtocolError: No voter.
    """
    cluster_id = codec.cluster_id_from_pb(value.cluster_id)
    return UpdateVoterRequest(request_id, cluster_id, _entry_in(value), value.epoch)


def add_request_to_pb(message: AddVoterRequest) -> raft_pb2.AddOwnVoterRequest:
    """An observer's wish to vote."""
    return raft_pb2.AddOwnVoterRequest(
        cluster_id=message.cluster_id, voter=voter_to_pb(message.voter), epoch=message.epoch
    )


def add_request_from_pb(value: raft_pb2.AddOwnVoterRequest, request_id: int) -> AddVoterRequest:
    """Inverse of ``add_request_to_pb``.

    Raises:
        PeerProtocolError: No voter.
    """
    cluster_id = codec.cluster_id_from_pb(value.cluster_id)
    return AddVoterRequest(request_id, cluster_id, _entry_in(value), value.epoch)


def remove_request_to_pb(message: RemoveVoterRequest) -> raft_pb2.RemoveOwnVoterRequest:
    """An observer's wish that an older entry of its number goes."""
    return raft_pb2.RemoveOwnVoterRequest(
        cluster_id=message.cluster_id,
        replica=codec.key_to_pb(message.replica),
        voter=codec.key_to_pb(message.voter),
        epoch=message.epoch,
    )


def remove_request_from_pb(
    value: raft_pb2.RemoveOwnVoterRequest, request_id: int
) -> RemoveVoterRequest:
    """Inverse of ``remove_request_to_pb``.

    Raises:
        PeerProtocolError: No replica or no voter.
    """
    if not value.HasField("replica") or not value.HasField("voter"):
        raise PeerProtocolError("RemoveVoterRequest: replica or voter is missing")
    return RemoveVoterRequest(
        request_id,
        codec.cluster_id_from_pb(value.cluster_id),
        codec.key_from_pb(value.replica),
        codec.key_from_pb(value.voter),
        value.epoch,
    )


def change_response_to_pb(message: VoterChangeResponse) -> raft_pb2.OwnVoterResponse:
    """How it went."""
    return raft_pb2.OwnVoterResponse(
        error_code=codec.error_to_pb(message.error),
        current_leader=codec.leader_to_pb(message.leader_id, message.epoch),
        message=message.message[:MESSAGE_CHARACTERS_MAX],
        leader_endpoints=codec.endpoints_to_pb(message.leader_endpoints),
    )


def change_response_from_pb(
    value: raft_pb2.OwnVoterResponse, request_id: int
) -> VoterChangeResponse:
    """Inverse of ``change_response_to_pb``.

    Raises:
        PeerProtocolError: No current leader, which carries the epoch, or a message too long.
    """
    if not value.HasField("current_leader"):
        raise PeerProtocolError("VoterChange response: current_leader is missing")
    if len(value.message) > MESSAGE_CHARACTERS_MAX:
        raise PeerProtocolError(f"VoterChange response: {len(value.message)} characters of text")
    return VoterChangeResponse(
        request_id=request_id,
        error=codec.error_from_pb(value.error_code),
        leader_id=value.current_leader.leader_id,
        epoch=value.current_leader.leader_epoch,
        message=value.message,
        leader_endpoints=codec.endpoints_from_pb(value.leader_endpoints),
    )

"""A replica's requests to its leader about its own entry in the voter set, and the answer.

Operators' requests arrive by ``on_local_event`` instead; a replica may change its own entry only.

See: KIP-853 (UpdateRaftVoter, auto join); docs/reference/protocol.md, "Between replicas".
"""

from __future__ import annotations

from typing import ClassVar

from quorum.core.messages.refusals import ADDING, OF_CHANGES, REMOVING, UPDATING, Codes
from quorum.errors import ErrorCode
from quorum.types import Endpoint, Epoch, NodeId, ReplicaKey, Voter
from quorum.values import value


@value
class UpdateVoterRequest:
    """Advertise a voter's endpoints, disk and supported versions."""

    refusals: ClassVar[Codes] = OF_CHANGES | UPDATING
    request_id: int
    cluster_id: str
    voter: Voter
    epoch: Epoch


@value
class AddVoterRequest:
    """An observer's request to become a voter (auto join), answered before the commit."""

    refusals: ClassVar[Codes] = OF_CHANGES | ADDING
    request_id: int
    cluster_id: str
    voter: Voter
    epoch: Epoch


@value
class RemoveVoterRequest:
    """An observer's request to remove the entry of its id with another disk (auto join)."""

    refusals: ClassVar[Codes] = OF_CHANGES | REMOVING
    request_id: int
    cluster_id: str
    replica: ReplicaKey
    """The sender."""
    voter: ReplicaKey
    """The entry to remove: the same node id, another directory."""
    epoch: Epoch


@value
class VoterChangeResponse:
    """Answer to all three. ``message`` gives the reason of a refusal, for humans."""

    request_id: int
    error: ErrorCode
    leader_id: NodeId
    epoch: Epoch
    message: str = ""
    leader_endpoints: tuple[Endpoint, ...] = ()

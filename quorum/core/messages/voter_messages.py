"""What a replica asks its leader about its self registration in the voter set, and the answer.

An operator's wishes do not come this way but by ``on_local_event``; a replica speaks for itself
only.

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
    """A voter says where it is, on which disk, and what it supports."""

    refusals: ClassVar[Codes] = OF_CHANGES | UPDATING
    request_id: int
    cluster_id: str
    voter: Voter
    epoch: Epoch
    is_unproven: bool = False
    """Nothing but the request says that ``voter`` sent it (ADR 52); does not travel. Set by the
    receiving transport."""


@value
class AddVoterRequest:
    """An observer asks to vote (auto join); it does not wait for the commit."""

    refusals: ClassVar[Codes] = OF_CHANGES | ADDING
    request_id: int
    cluster_id: str
    voter: Voter
    epoch: Epoch
    is_unproven: bool = False
    """As in ``UpdateVoterRequest``."""


@value
class RemoveVoterRequest:
    """An observer asks that the entry of its number with another disk goes (auto join)."""

    refusals: ClassVar[Codes] = OF_CHANGES | REMOVING
    request_id: int
    cluster_id: str
    replica: ReplicaKey
    """Who asks."""
    voter: ReplicaKey
    """The entry to remove: the same number, another directory."""
    epoch: Epoch
    is_unproven: bool = False
    """As in ``UpdateVoterRequest``."""


@value
class VoterChangeResponse:
    """Answer to all three. ``message`` says why not, for a human."""

    request_id: int
    error: ErrorCode
    leader_id: NodeId
    epoch: Epoch
    message: str = ""
    leader_endpoints: tuple[Endpoint, ...] = ()

"""Messages that begin and end a leader's epoch.

See: KIP-595, KIP-853 (field meanings); ``leadership_term`` and ``resignation`` for their meaning.
"""

from __future__ import annotations

from typing import ClassVar

from quorum.control_records import Origin
from quorum.core.messages.refusals import OF_LEADERS, Codes
from quorum.errors import ErrorCode
from quorum.types import Endpoint, Epoch, NodeId, ReplicaKey, VersionRange
from quorum.values import value


@value
class BeginQuorumEpochRequest:
    """Announce the leader of ``epoch`` to a voter."""

    refusals: ClassVar[Codes] = OF_LEADERS
    request_id: int
    cluster_id: str
    voter: ReplicaKey
    leader: ReplicaKey
    epoch: Epoch
    leader_endpoints: tuple[Endpoint, ...] = ()


@value
class BeginQuorumEpochResponse:
    """Answer to ``BeginQuorumEpochRequest``; without an error it has the supported versions."""

    request_id: int
    error: ErrorCode
    leader_id: NodeId
    epoch: Epoch
    leader_endpoints: tuple[Endpoint, ...] = ()
    supported: tuple[VersionRange, ...] = ()


@value
class EndQuorumEpochRequest:
    """Announce a leader's resignation and its preferred successors, best first."""

    refusals: ClassVar[Codes] = OF_LEADERS
    request_id: int
    cluster_id: str
    leader: ReplicaKey
    epoch: Epoch
    preferred_successors: tuple[ReplicaKey, ...] = ()
    leader_endpoints: tuple[Endpoint, ...] = ()
    campaign_now: bool = False
    """To the first successor only: campaign without a pre-vote; the sender leads until then."""
    origin: Origin | None = None
    """With ``campaign_now``: who asked for this transfer, and why."""


@value
class EndQuorumEpochResponse:
    """Answer to ``EndQuorumEpochRequest``."""

    request_id: int
    error: ErrorCode
    leader_id: NodeId
    epoch: Epoch
    leader_endpoints: tuple[Endpoint, ...] = ()

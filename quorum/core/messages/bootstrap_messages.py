"""What bootstrap voters say to each other before epoch 1.

See: ``bootstrapping`` for what they mean.
"""

from __future__ import annotations

from quorum.errors import ErrorCode
from quorum.types import ZERO_UUID, Endpoint, Epoch, NodeId, ReplicaKey, Uuid
from quorum.values import value


@value
class FoundingRequest:
    """One bootstrap voter asks another, in epoch 0, whether it is freshly formatted too."""

    request_id: int
    cluster_id: str
    sender: ReplicaKey
    voter: ReplicaKey
    epoch: Epoch
    life_id: Uuid
    """Drawn once per format by the sender's disk."""
    roster: tuple[tuple[NodeId, Uuid], ...] = ()
    """The lives the sender has durably agreed to found the quorum with; empty: none yet."""


@value
class FoundingResponse:
    """Answer to ``FoundingRequest``; the responder's own life and roster, both durable."""

    request_id: int
    error: ErrorCode
    leader_id: NodeId
    epoch: Epoch
    life_id: Uuid = ZERO_UUID
    roster: tuple[tuple[NodeId, Uuid], ...] = ()
    leader_endpoints: tuple[Endpoint, ...] = ()

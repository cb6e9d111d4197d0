"""Messages between bootstrap voters before epoch 1.

See: ``bootstrapping`` for their meaning.
"""

from __future__ import annotations

from typing import ClassVar

from quorum.core.messages.refusals import OF_VOTERS, Codes
from quorum.errors import ErrorCode
from quorum.types import ZERO_UUID, Endpoint, Epoch, NodeId, ReplicaKey, Uuid
from quorum.values import value


@value
class BootstrapRequest:
    """Ask another bootstrap voter, in epoch 0, whether it is freshly formatted too."""

    refusals: ClassVar[Codes] = OF_VOTERS | {ErrorCode.INELIGIBLE_REPLICA}
    request_id: int
    cluster_id: str
    sender: ReplicaKey
    voter: ReplicaKey
    epoch: Epoch
    incarnation_id: Uuid
    """Drawn once per format by the sender's disk."""
    voter_list: tuple[tuple[NodeId, Uuid], ...] = ()
    """Incarnation ids that the sender has durably agreed on; empty: none yet."""


@value
class BootstrapResponse:
    """Answer to ``BootstrapRequest``: the responder's own incarnation id and list, both durable."""

    request_id: int
    error: ErrorCode
    leader_id: NodeId
    epoch: Epoch
    incarnation_id: Uuid = ZERO_UUID
    voter_list: tuple[tuple[NodeId, Uuid], ...] = ()
    leader_endpoints: tuple[Endpoint, ...] = ()

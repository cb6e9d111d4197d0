"""Messages for linearizable reads: the round in Fetches, and the request for a position.

See: ADR 9; ``read_confirmation`` and ``read_forwarding`` for their meaning.
"""

from __future__ import annotations

from typing import ClassVar

from quorum.core.messages.refusals import TO_LEADER, Codes
from quorum.errors import ErrorCode
from quorum.types import Endpoint, Epoch, NodeId, ReplicaKey
from quorum.values import value


@value
class ReadRound:
    """A leadership confirmation round, numbered within one epoch (ADR 9)."""

    epoch: Epoch = 0
    number: int = 0


NO_ROUND = ReadRound()
"""Sent as long as nothing was echoed: epoch 0 has no leader, so it never counts."""


@value
class ReadPositionRequest:
    """Request an offset at which linearizable reads may be answered.

    It covers every read that waits at the sender when it leaves. See: ADR 9.
    """

    refusals: ClassVar[Codes] = TO_LEADER | {
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.QUEUE_FULL,
    }
    request_id: int
    cluster_id: str
    replica: ReplicaKey
    epoch: Epoch


@value
class ReadPositionResponse:
    """Answer to ``ReadPositionRequest``, after a read round that began later was confirmed.

    An image with all records below ``read_offset`` has every write acknowledged before the
    request was sent.
    """

    request_id: int
    error: ErrorCode
    leader_id: NodeId
    epoch: Epoch
    read_offset: int = -1
    leader_endpoints: tuple[Endpoint, ...] = ()

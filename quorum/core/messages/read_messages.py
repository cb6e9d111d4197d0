"""How reads become linearizable: the round that Fetches carry, and the question for a position.

See: ADR 9; ``read_confirmation`` and ``read_forwarding`` for what they mean.
"""

from __future__ import annotations

from typing import ClassVar

from quorum.core.messages.refusals import TO_LEADER, Codes
from quorum.errors import ErrorCode
from quorum.types import Endpoint, Epoch, NodeId, ReplicaKey
from quorum.values import value


@value
class ReadRound:
    """A leadership confirmation round: counted within one epoch (ADR 9)."""

    epoch: Epoch = 0
    number: int = 0


NO_ROUND = ReadRound()
"""Carried while nothing has been echoed: epoch 0 has no leader, so it never counts."""


@value
class ReadPositionRequest:
    """Ask the leader for an offset that linearizable reads may be answered at.

    Speaks for every read that waits at the sender when it leaves. See: ADR 9.
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
    """Answer to ``ReadPositionRequest``, once a read round begun after it was confirmed.

    An image that holds everything below ``read_offset`` holds every write acknowledged before
    the request was sent.
    """

    request_id: int
    error: ErrorCode
    leader_id: NodeId
    epoch: Epoch
    read_offset: int = -1
    leader_endpoints: tuple[Endpoint, ...] = ()

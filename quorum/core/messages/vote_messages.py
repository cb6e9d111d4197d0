"""Who asks to be elected, and who agrees.

See: KIP-595, KIP-996 (field meanings); ``campaign`` for what they mean.
"""

from __future__ import annotations

from typing import ClassVar

from quorum.core.messages.refusals import OF_VOTERS, Codes
from quorum.errors import ErrorCode
from quorum.types import Endpoint, Epoch, NodeId, OffsetAndEpoch, ReplicaKey
from quorum.values import value


@value
class VoteRequest:
    """Ask for a vote, or with ``pre_vote`` whether one would be given.

    ``epoch`` is already raised for a vote and not raised for a pre-vote. ``last`` is the
    sender's newest position: the newer of log end and latest snapshot (630.13).
    """

    refusals: ClassVar[Codes] = OF_VOTERS
    request_id: int
    cluster_id: str
    candidate: ReplicaKey
    voter: ReplicaKey
    """The receiver as the sender knows it; id ``NO_NODE`` skips the check."""
    epoch: Epoch
    last: OffsetAndEpoch
    pre_vote: bool


@value
class VoteResponse:
    """Answer to ``VoteRequest``. ``granted`` is a promise and leaves only when durable."""

    request_id: int
    error: ErrorCode
    leader_id: NodeId
    epoch: Epoch
    granted: bool
    leader_endpoints: tuple[Endpoint, ...] = ()

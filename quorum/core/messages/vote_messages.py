"""Vote and pre-vote requests and their answers.

See: KIP-595, KIP-996 (field meanings); ``campaign`` for their meaning.
"""

from __future__ import annotations

from typing import ClassVar

from quorum.core.messages.refusals import OF_VOTERS, Codes
from quorum.errors import ErrorCode
from quorum.types import Endpoint, Epoch, NodeId, OffsetAndEpoch, ReplicaKey
from quorum.values import value


@value
class VoteRequest:
    """Request a vote; with ``pre_vote``, ask whether it would be granted.

    ``epoch`` is already raised for a vote and not raised for a pre-vote. ``last`` is the
    sender's newest position: the newer of log end and latest snapshot (630.13).
    """

    refusals: ClassVar[Codes] = OF_VOTERS
    request_id: int
    cluster_id: str
    candidate: ReplicaKey
    voter: ReplicaKey
    """The receiver's key as known to the sender; id ``NO_NODE`` skips the check."""
    epoch: Epoch
    last: OffsetAndEpoch
    pre_vote: bool


@value
class VoteResponse:
    """Answer to ``VoteRequest``. A ``granted`` vote is a promise and leaves only when durable."""

    request_id: int
    error: ErrorCode
    leader_id: NodeId
    epoch: Epoch
    granted: bool
    leader_endpoints: tuple[Endpoint, ...] = ()

"""Log digests of another replica, for resolving a divergence.

See: ADR 25; ``chain_digests`` and ``divergence_resolution`` for their meaning.
"""

from __future__ import annotations

from typing import ClassVar

from quorum.core.messages.refusals import MALFORMED, Codes
from quorum.errors import ErrorCode
from quorum.types import DigestAt, Endpoint, Epoch, NodeId, ReplicaKey
from quorum.values import value

CHAIN_OFFSETS_MAX = 32
"""Digests in one request."""


@value
class ChainDigestRequest:
    """Ask any replica, whatever its role, for its log digests.

    For each of ``offsets`` the digest at the last batch boundary at or below it.
    """

    refusals: ClassVar[Codes] = MALFORMED
    request_id: int
    cluster_id: str
    replica: ReplicaKey
    epoch: Epoch
    offsets: tuple[int, ...]


@value
class ChainDigestResponse:
    """Answer to ``ChainDigestRequest``: one of ``points`` for each of ``offsets``.

    Offset -1 with an empty digest: unknown. The answering runtime fills ``points``. The requesting
    one adds its own digests as ``own``, which is not sent.
    """

    request_id: int
    error: ErrorCode
    leader_id: NodeId
    epoch: Epoch
    offsets: tuple[int, ...] = ()
    points: tuple[DigestAt, ...] = ()
    own: tuple[DigestAt, ...] = ()
    leader_endpoints: tuple[Endpoint, ...] = ()
    replica: ReplicaKey | None = None
    """Replica that the log belongs to; None with an error."""

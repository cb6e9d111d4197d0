"""A checkpoint file, slice by slice.

See: KIP-630 (field meanings); ``snapshot_transfer`` for what they mean.
"""

from __future__ import annotations

from quorum.core.messages.read_messages import NO_ROUND, ReadRound
from quorum.errors import ErrorCode
from quorum.types import Endpoint, Epoch, NodeId, ReplicaKey, SnapshotId
from quorum.values import value


@value
class FetchSnapshotRequest:
    """Ask for up to ``max_bytes`` of a checkpoint file from byte ``position`` on."""

    request_id: int
    cluster_id: str
    replica: ReplicaKey
    epoch: Epoch
    snapshot_id: SnapshotId
    position: int
    max_bytes: int
    read_round: ReadRound = NO_ROUND
    is_disqualified: bool = False
    """As in ``FetchRequest``."""


@value
class FetchSnapshotResponse:
    """A slice of a checkpoint. ``size`` is the whole file's; ``chunk`` may cut a batch.

    The core fills ``serve_bytes_max``; the runtime reads the file and sets ``chunk`` and
    ``chunk_crc`` (CRC-32C). ``file_digest`` identifies the whole file, so that a download can
    resume from another leader only when it offers the same bytes.
    """

    request_id: int
    error: ErrorCode
    leader_id: NodeId
    epoch: Epoch
    snapshot_id: SnapshotId
    size: int = 0
    position: int = 0
    serve_bytes_max: int = 0
    chunk: bytes = b""
    chunk_crc: int = 0
    file_digest: bytes = b""
    read_round: ReadRound = NO_ROUND
    leader_endpoints: tuple[Endpoint, ...] = ()

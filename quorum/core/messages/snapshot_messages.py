"""Transfer of a checkpoint file, chunk by chunk.

The core decides which chunk to serve (``ServeChunk``), and the runtime reads it from the file.

See: ADR 54; KIP-630 (field meanings); ``snapshot_transfer`` for their meaning.
"""

from __future__ import annotations

from typing import ClassVar

from quorum.core.messages.read_messages import NO_ROUND, ReadRound
from quorum.core.messages.refusals import OF_RELAYS, TO_LEADER, Codes
from quorum.errors import ErrorCode
from quorum.types import Endpoint, Epoch, NodeId, ReplicaKey, SnapshotId
from quorum.values import value


@value
class FetchSnapshotRequest:
    """Request up to ``max_bytes`` of a checkpoint file from byte ``position`` on."""

    refusals: ClassVar[Codes] = TO_LEADER | {
        ErrorCode.SNAPSHOT_NOT_FOUND,
        ErrorCode.POSITION_OUT_OF_RANGE,
    }
    relay_refusals: ClassVar[Codes] = OF_RELAYS | {ErrorCode.POSITION_OUT_OF_RANGE}
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
    """A chunk of a checkpoint as sent; ``size`` is that of the whole file.

    ``chunk`` may end inside a batch; ``chunk_crc`` is its CRC-32C. ``file_digest`` identifies the
    whole file: a download resumes from another leader only if it offers the same bytes.
    """

    request_id: int
    error: ErrorCode
    leader_id: NodeId
    epoch: Epoch
    snapshot_id: SnapshotId
    size: int = 0
    position: int = 0
    chunk: bytes = b""
    chunk_crc: int = 0
    file_digest: bytes = b""
    read_round: ReadRound = NO_ROUND
    leader_endpoints: tuple[Endpoint, ...] = ()


@value
class ServeChunk:
    """The core's decision: read at most ``bytes_max`` from byte ``position`` of a checkpoint."""

    request_id: int
    leader_id: NodeId
    epoch: Epoch
    snapshot_id: SnapshotId
    position: int
    bytes_max: int
    read_round: ReadRound = NO_ROUND

    def response(
        self,
        error: ErrorCode = ErrorCode.NONE,
        *,
        size: int = 0,
        chunk: bytes = b"",
        chunk_crc: int = 0,
        file_digest: bytes = b"",
    ) -> FetchSnapshotResponse:
        """Return the answer to send, with the chunk, or with the error of the read."""
        return FetchSnapshotResponse(
            self.request_id,
            error,
            self.leader_id,
            self.epoch,
            self.snapshot_id,
            size,
            self.position,
            chunk,
            chunk_crc,
            file_digest,
            self.read_round,
        )

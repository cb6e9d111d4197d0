"""Comparing checkpoints with the log beside them.

The header of a checkpoint has its position, and the log digest there. The
file name alone decides where replay continues in the log, so a file under another name would let
the records in between be skipped. One of an earlier release does not say its position, one of
Kafka's neither: then the digest, or at least the epoch, must be the log's.

See: ADR 5 and 40, docs/reference/formats.md#checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from quorum.types import Epoch, EpochStart, OffsetAndEpoch, SnapshotId
from snapshot.format import CheckpointHead


class LogPositions(Protocol):
    """The positions of a log that is open for reading or writing."""

    @property
    def start(self) -> OffsetAndEpoch:
        """First offset kept, and the epoch of the record before it."""

    @property
    def end(self) -> OffsetAndEpoch:
        """Written end (exclusive), and the epoch of the last record."""

    @property
    def epochs(self) -> Sequence[EpochStart]:
        """The epoch history of the records in the log, ascending."""

    def digest_at(self, offset: int) -> bytes:
        """The log digest below ``offset``; empty when not known or inside a batch."""


def contradiction(snapshot_id: SnapshotId, head: CheckpointHead, log: LogPositions) -> str:
    """Return why this cannot be the checkpoint of that position of ``log``; empty if it can be.

    A position outside of the log, or at its start, contradicts nothing.
    """
    if not log.start.offset < snapshot_id.offset <= log.end.offset:
        return ""
    before = [entry.epoch for entry in log.epochs if entry.start_offset < snapshot_id.offset]
    epoch = before[-1] if before else log.start.epoch
    return contradiction_at(snapshot_id, head, epoch, log.digest_at(snapshot_id.offset))


def contradiction_at(
    snapshot_id: SnapshotId, head: CheckpointHead, epoch: Epoch, digest: bytes
) -> str:
    """As ``contradiction``, with the log's epoch before that offset, and its digest there."""
    if epoch != snapshot_id.epoch:
        return f"the log is of epoch {epoch} before offset {snapshot_id.offset}"
    if head.log_digest and digest and head.log_digest != digest:
        return f"its log digest is not the log's at offset {snapshot_id.offset}"
    return ""

"""A snapshot on its way to this replica: which one, how much of it, and what a chunk must match.

Positions and identities only; the bytes go from the message straight into an effect.

See: KIP-630; docs/architecture.md (A replica that fell behind).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from quorum.core.contract.local_events import PartialDownload
from quorum.core.messages.received_records import VotersAt
from quorum.core.messages.snapshot_messages import FetchSnapshotResponse
from quorum.core.positions.log_view import LogView
from quorum.types import Epoch, SnapshotId

RESTING = -1
"""The epoch of a download that waits for a leader to offer its file again."""


@dataclass(slots=True)
class Download:
    """The one download of a replica.

    Life-cycle: filling, then ``is_complete`` and being verified and frozen by the runtime; a
    ``SealedSnapshot`` takes over from there. Bound to one ``epoch``; after a change of epoch
    it rests until the new leader offers the same file. So does one that an earlier process run
    left (``found``).
    """

    snapshot_id: SnapshotId
    epoch: Epoch
    position: int = 0
    """Bytes received; also the position to ask for."""
    size: int = -1
    """Bytes of the whole file as its first chunk said; -1 before that."""
    file_digest: bytes = b""
    chunk_bytes: int = 0
    """Length of the latest slice, and so of the next ones; 0 before the first is here."""
    contact_due_ms: int = 0
    """While the file is being frozen: when to show the leader a sign of life."""
    unwritten: deque[int] = field(default_factory=deque)
    """Tickets of chunks that the disk has not taken yet."""
    found_bytes: int = 0
    """Bytes at its beginning that an earlier process run left; 0 once it began anew. No response
    of this process run vouches for them before the whole file matches the sender's digest."""

    @staticmethod
    def found(part: PartialDownload) -> Download:
        """The download that an earlier process run left; it rests until a leader offers it."""
        return Download(part.snapshot_id, RESTING, part.size, found_bytes=part.size)

    @property
    def is_unconfirmed(self) -> bool:
        """Whether it consists of what an earlier process run left, and of no chunk yet."""
        return self.found_bytes > 0 and self.size < 0

    @property
    def is_complete(self) -> bool:
        """Whether every byte has arrived."""
        return self.size >= 0 and self.position >= self.size

    def restart(self) -> None:
        """Forget everything received."""
        self.position = 0
        self.size = -1
        self.file_digest = b""
        self.chunk_bytes = 0
        self.found_bytes = 0

    def is_another_file(self, response: FetchSnapshotResponse) -> bool:
        """Whether the sender's file is not the one begun with; for a chunk without problem.

        What an earlier process run left is not continued from a sender that names no digest:
        nothing would show in the end that both parts are of one file.
        """
        if self.is_unconfirmed:
            return not response.file_digest
        return self.size >= 0 and (
            response.size != self.size or response.file_digest != self.file_digest
        )

    def problem_with(self, response: FetchSnapshotResponse) -> str:
        """Why a chunk cannot be the next one; empty when it can."""
        if response.snapshot_id != self.snapshot_id:
            return "another snapshot"
        if response.position != self.position:
            return f"position {response.position} instead of {self.position}"
        if not response.chunk:
            return "an empty chunk"
        if response.position + len(response.chunk) > response.size:
            return f"a chunk beyond the size {response.size}"
        return ""


@dataclass(frozen=True, slots=True)
class SealedSnapshot:
    """A downloaded checkpoint that is verified, durable and has its final name."""

    snapshot_id: SnapshotId
    voters: tuple[VotersAt, ...]
    size: int


def replaces_log(log: LogView, high_watermark: int, snapshot_id: SnapshotId) -> bool:
    """Whether a snapshot by a leader brings ``log`` forward by taking its place.

    Not one that reaches less far than what is known to be committed here, nor one whose
    position this log already has with the same epoch: it would only throw records away.
    """
    offset = snapshot_id.offset
    if offset < high_watermark:
        return False
    if not log.start.offset <= offset <= log.end_offset:
        return True
    return log.epochs.epoch_before(offset) != snapshot_id.epoch

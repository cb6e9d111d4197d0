"""A snapshot download: its id, its progress, and the checks of each chunk.

It holds positions and identities only; the bytes go from the message into an effect.
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

    Life-cycle: receiving, then ``is_complete`` while the runtime verifies and seals it; then a
    ``SealedSnapshot`` replaces it. It is bound to one ``epoch``. After a change of epoch it pauses
    until the new leader offers the same file. So does one that an earlier process run left
    (``found``).
    """

    snapshot_id: SnapshotId
    epoch: Epoch
    position: int = 0
    """Bytes received; the position of the next request."""
    size: int = -1
    """Bytes of the whole file, from its first chunk; -1 before that."""
    file_digest: bytes = b""
    chunk_bytes: int = 0
    """Length of the latest chunk, and so of the next ones; 0 before the first."""
    contact_due_ms: int = 0
    """While the file is being sealed: time of the next Fetch that keeps contact with the leader."""
    unwritten: deque[int] = field(default_factory=deque)
    """Tickets of chunks that the disk has not written yet."""
    found_bytes: int = 0
    """Bytes at the beginning from an earlier process run; 0 once it was restarted. They are
    unconfirmed until the digest of the whole file matches the sender's."""

    @staticmethod
    def found(part: PartialDownload) -> Download:
        """Return the download of an earlier process run; it pauses until a leader offers it."""
        return Download(part.snapshot_id, RESTING, part.size, found_bytes=part.size)

    @property
    def is_unconfirmed(self) -> bool:
        """Whether all its bytes come from an earlier process run."""
        return self.found_bytes > 0 and self.size < 0

    @property
    def is_complete(self) -> bool:
        """Whether every byte has arrived."""
        return self.size >= 0 and self.position >= self.size

    def restart(self) -> None:
        """Drop everything received."""
        self.position = 0
        self.size = -1
        self.file_digest = b""
        self.chunk_bytes = 0
        self.found_bytes = 0

    def is_another_file(self, response: FetchSnapshotResponse) -> bool:
        """Whether the sender's file differs from the one begun; for a chunk without problem.

        Bytes of an earlier process run are not continued from a sender without a file digest:
        nothing would prove that both parts belong to one file.
        """
        if self.is_unconfirmed:
            return not response.file_digest
        return self.size >= 0 and (
            response.size != self.size or response.file_digest != self.file_digest
        )

    def problem_with(self, response: FetchSnapshotResponse) -> str:
        """Return why a chunk cannot be the next one; empty if it can."""
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
    """Whether a snapshot from a leader advances ``log`` by replacing it.

    Not if it ends below the high watermark here, nor if the log already has its position with
    the same epoch: that would only discard records.
    """
    offset = snapshot_id.offset
    if offset < high_watermark:
        return False
    if not log.start.offset <= offset <= log.end_offset:
        return True
    return log.epochs.epoch_before(offset) != snapshot_id.epoch

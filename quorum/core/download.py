"""A snapshot on its way to this replica: which one, how much of it, and what a chunk must match.

Positions and identities only; the bytes go from the message straight into an effect.

See: KIP-630; architecture 5.2 step 5.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from quorum.core.messages import FetchSnapshotResponse, VotersAt
from quorum.types import Epoch, SnapshotId


@dataclass(slots=True)
class Download:
    """The one download of a replica.

    Life-cycle: filling, then ``is_complete`` and being frozen, then ``is_frozen`` and waiting
    to replace the log. Bound to one ``epoch``; after a change of epoch it rests until the
    new leader offers the same file.
    """

    snapshot_id: SnapshotId
    epoch: Epoch
    position: int = 0
    """Bytes received; also the position to ask for."""
    size: int = -1
    """Bytes of the whole file as its first chunk said; -1 before that."""
    file_digest: bytes = b""
    is_frozen: bool = False
    voters: tuple[VotersAt, ...] = ()
    contact_due_ms: int = 0
    """While the file is being frozen: when to show the leader a sign of life."""
    unwritten: deque[int] = field(default_factory=deque)
    """Tickets of chunks that the disk has not taken yet."""

    @property
    def is_complete(self) -> bool:
        """Whether every byte has arrived."""
        return self.size >= 0 and self.position >= self.size

    def restart(self) -> None:
        """Forget everything received."""
        self.position = 0
        self.size = -1
        self.file_digest = b""

    def is_another_file(self, response: FetchSnapshotResponse) -> bool:
        """Whether the sender's file of the same id is not the one begun with."""
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

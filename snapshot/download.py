"""Download of a checkpoint: written and verified chunk by chunk.

This module fills one part file from another replica, in one process run or over several.
``quorum.core`` chooses the snapshot, the sender and the position, and restarts a download.

See: KIP-630, ADR 50, docs/architecture.md (A replica that fell behind).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quorum.errors import QuorumUsageError, SnapshotCorruptError, StorageError
from quorum.ports import FileSystem
from quorum.types import SnapshotId
from snapshot.naming import FileState, file_path
from snapshot.verifier import CheckpointSummary, CheckpointVerifier
from snapshot.writer import DOWNLOAD_SYNC_BYTES, PartFile

RESERVE_BYTES: Final = 1 << 20
"""Free bytes that a download leaves, so that the snapshot can be installed in place of the log.
The install writes a new segment and small files before it removes the old segments. The reserve is
no larger, because the install frees the old log's space: a nearly full disk needs it most."""

_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class FoundDownload:
    """A download that an earlier process run left, after it was verified and cut."""

    snapshot_id: SnapshotId
    size_bytes: int
    """Length of the verified whole batches that were kept, without the footer; 0: file removed."""
    cut_bytes: int
    """Bytes removed behind them: an incomplete batch, a footer, or the damaged rest."""
    damage: str
    """Why the first removed byte is invalid, or why the file was removed; else empty."""


def without_room(fs: FileSystem, directory: Path, snapshot_id: SnapshotId) -> FoundDownload | None:
    """Return a report for a part file if the disk is too full to keep it; else None.

    Raises:
        StorageError: The file cannot be read.
    """
    free = fs.free_bytes(directory)
    if free is None or free >= RESERVE_BYTES:
        return None
    file = fs.open(file_path(directory, snapshot_id, FileState.PART))
    size = file.size()
    file.close()
    reason = f"removed: the disk has {free} free bytes, which the log may need to start"
    return FoundDownload(snapshot_id, 0, size, reason)


class Download:
    """One download; owned by the store, used from the writer thread.

    Invariants:
        1. The part file holds exactly the received chunks, in order.
        2. The final name appears only after every batch, header and footer were verified.

    Chunks are stored even after one proved the file corrupt. ``seal`` reports the corruption,
    and the quarantined file is complete for analysis.
    """

    def __init__(
        self,
        fs: FileSystem,
        directory: Path,
        snapshot_id: SnapshotId,
        *,
        keeps_content: bool = False,
    ) -> None:
        """Create an empty part file; with ``keeps_content`` open the present one for ``recover``.

        Raises:
            StorageError: It cannot be created.
        """
        self.snapshot_id = snapshot_id
        self._part = PartFile(
            fs,
            directory,
            snapshot_id,
            sync_bytes=DOWNLOAD_SYNC_BYTES,
            reserve_bytes=RESERVE_BYTES,
            keeps_content=keeps_content,
        )
        self._verifier = self._new_verifier()
        self._failure: SnapshotCorruptError | None = None

    def _new_verifier(self) -> CheckpointVerifier:
        return CheckpointVerifier(snapshot_id=self.snapshot_id, path=self._part.path)

    def recover(self) -> FoundDownload:
        """Verify what an earlier process run left, and keep the intact whole batches.

        After a power loss the file may have any content. The footer is not kept, so that the
        download always gets an answer from a leader before it is complete.

        A file without an intact batch is removed.

        Raises:
            StorageError: The disk failed.
        """
        before = kept = self._part.size_bytes
        damages: list[str] = []
        while kept:
            limit = kept
            kept = self._verify_up_to(limit, damages)
            if kept == limit:
                break
            # The verifier has read bytes that are not kept: start again without them.
            self._verifier = self._new_verifier()
        self._part.cut_to(kept)
        if not kept:
            self.abandon()
        return FoundDownload(self.snapshot_id, kept, before - kept, damages[0] if damages else "")

    def _verify_up_to(self, limit: int, damages: list[str]) -> int:
        """Feed the verifier the first ``limit`` bytes; return how many of them may be kept."""
        try:
            for position in range(0, limit, _READ_BYTES):
                size = min(_READ_BYTES, limit - position)
                self._verifier.feed(self._part.read_at(position, size))
        except StorageError as error:
            # Corrupt or unreadable: a download can be repeated, so the node must still start.
            damages.append(str(error))
        return self._verifier.body_bytes

    @property
    def size_bytes(self) -> int:
        """Bytes received so far; the position of the next chunk."""
        return self._part.size_bytes

    def write(self, position: int, chunk: bytes) -> None:
        """Store and verify the next chunk.

        Raises:
            QuorumUsageError: ``position`` is not ``size_bytes``; nothing was written.
            StorageError: The disk failed, or only ``RESERVE_BYTES`` are free (``DiskFullError``).
        """
        if position != self.size_bytes:
            raise QuorumUsageError(
                f"chunk at position {position} of a download that has {self.size_bytes} bytes"
            )
        self._part.append(chunk)
        if self._failure is None:
            try:
                self._verifier.feed(chunk)
            except SnapshotCorruptError as error:
                self._failure = error

    def seal(self, file_digest: bytes = b"") -> CheckpointSummary:
        """Finish the file: give it its final name, or quarantine it.

        A non-empty ``file_digest`` is that of the sender's file and must match.

        Raises:
            SnapshotCorruptError: The file was quarantined; the error names its new path.
            StorageError: The disk failed.
        """
        try:
            if self._failure is not None:
                raise self._failure
            summary = self._verifier.finish()
            if file_digest not in (b"", summary.digest):
                raise SnapshotCorruptError(
                    f"digest {summary.digest.hex()} where the sender's file has "
                    f"{file_digest.hex()}",
                    self._part.path,
                )
        except SnapshotCorruptError as error:
            quarantined = self._part.seal(FileState.CORRUPT)
            raise SnapshotCorruptError(
                f"{error}; {self.size_bytes} bytes were downloaded and are kept here", quarantined
            ) from error
        self._part.seal()
        return summary

    def abandon(self) -> None:
        """Remove the part file; does nothing after ``seal``."""
        self._part.discard()

    def close(self) -> None:
        """Leave the part file for a later process run."""
        self._part.close()

"""A checkpoint on its way in: written and verified chunk by chunk.

Belongs here: one part file being filled from another replica, in one process run or over several.
Which snapshot, from whom and at which position is the core's decision (``quorum.core``), and so is
starting over.

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
"""Left free beside a download, for what it takes to put it in the log's place: a new segment and
the small files that say so are written before the old segments go. No more than that: once it is in
place the old log's space is free, so a nearly full disk is the last that should refuse it."""

_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class FoundDownload:
    """What an earlier process run left of a download, once it was verified and cut."""

    snapshot_id: SnapshotId
    size_bytes: int
    """Length of the whole batches that were verified and kept, without the footer; 0: the file is
    gone."""
    cut_bytes: int
    """What was cut off behind: the incomplete last batch, a footer, or what ``damage`` is about."""
    damage: str
    """Why the first byte cut off is of no checkpoint, or why all was removed; else empty."""


def without_room(fs: FileSystem, directory: Path, snapshot_id: SnapshotId) -> FoundDownload | None:
    """What to report of a part file for which the disk is too full; None while there is room.

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
        1. The part file holds exactly the chunks taken, in order.
        2. The final name appears only after every batch, header and footer were verified.

    A chunk that proves the file corrupt is still stored, and so are those behind it: the
    verdict comes with ``freeze``, and the quarantined file is whole for whoever looks at it.
    """

    def __init__(
        self,
        fs: FileSystem,
        directory: Path,
        snapshot_id: SnapshotId,
        *,
        keeps_content: bool = False,
    ) -> None:
        """Open an empty part file; with ``keeps_content`` the one that is there, for ``recover``.

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
        """Verify what an earlier process run left, and keep the whole batches that are intact.

        Power loss may have taken any part of it, and left anything. The footer is not kept: the
        download then always hears from a leader before it is complete.

        Where that is nothing the file is removed.

        Raises:
            StorageError: The disk failed.
        """
        before = kept = self._part.size_bytes
        damages: list[str] = []
        while kept and (limit := kept) != (kept := self._verify_up_to(limit, damages)):
            # The verifier has taken more than is kept: from the beginning again, without that.
            self._verifier = self._new_verifier()
        self._part.cut_to(kept)
        if not kept:
            self.abandon()
        return FoundDownload(self.snapshot_id, kept, before - kept, damages[0] if damages else "")

    def _verify_up_to(self, limit: int, damages: list[str]) -> int:
        """Feed the verifier the first ``limit`` bytes; how many of them may be kept."""
        try:
            for position in range(0, limit, _READ_BYTES):
                size = min(_READ_BYTES, limit - position)
                self._verifier.feed(self._part.read_at(position, size))
        except StorageError as error:
            # Corrupt, or unreadable: what can be had again is no reason to stay down.
            damages.append(str(error))
        return self._verifier.body_bytes

    @property
    def size_bytes(self) -> int:
        """Bytes taken so far; the position of the next chunk."""
        return self._part.size_bytes

    def write(self, position: int, chunk: bytes) -> None:
        """Take the next chunk.

        Raises:
            QuorumUsageError: ``position`` is not ``size_bytes``; nothing was written.
            StorageError: The disk failed, or is full but for ``RESERVE_BYTES`` (``DiskFullError``).
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

    def freeze(self, file_digest: bytes = b"") -> CheckpointSummary:
        """Finish the file: give it its final name, or quarantine it.

        Unless empty, ``file_digest`` is that of the sender's file, which must be the same.

        Raises:
            SnapshotCorruptError: It was quarantined; the error names its new path.
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
            quarantined = self._part.freeze(FileState.CORRUPT)
            raise SnapshotCorruptError(
                f"{error}; {self.size_bytes} bytes were downloaded and are kept here", quarantined
            ) from error
        self._part.freeze()
        return summary

    def abandon(self) -> None:
        """Remove the part file; does nothing after ``freeze``."""
        self._part.discard()

    def close(self) -> None:
        """Leave the part file for a later process run."""
        self._part.close()

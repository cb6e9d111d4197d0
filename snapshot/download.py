"""A checkpoint on its way in: written and verified chunk by chunk.

Belongs here: one part file being filled from another replica. Which snapshot, from whom and
at which position is the core's decision (``quorum.core``), and so is starting over.

See: KIP-630, docs/architecture.md (A replica that fell behind).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from quorum.errors import QuorumUsageError, SnapshotCorruptError
from quorum.ports import FileSystem
from quorum.types import SnapshotId
from snapshot.naming import FileState
from snapshot.verifier import CheckpointSummary, CheckpointVerifier
from snapshot.writer import DOWNLOAD_SYNC_BYTES, PartFile

RESERVE_BYTES: Final = 1 << 20
"""Left free beside a download, for what it takes to put it in the log's place: a new segment and
the small files that say so are written before the old segments go. No more than that: once it is in
place the old log's space is free, so a nearly full disk is the last that should refuse it."""


class Download:
    """One download; owned by the store, used from the writer thread.

    Invariants:
        1. The part file holds exactly the chunks taken, in order.
        2. The final name appears only after every batch, header and footer were verified.

    A chunk that proves the file corrupt is still stored, and so are those behind it: the
    verdict comes with ``freeze``, and the quarantined file is whole for whoever looks at it.
    """

    def __init__(self, fs: FileSystem, directory: Path, snapshot_id: SnapshotId) -> None:
        """Open an empty part file.

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
        )
        self._verifier = CheckpointVerifier(snapshot_id=snapshot_id, path=self._part.path)
        self._failure: SnapshotCorruptError | None = None

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

    def freeze(self) -> CheckpointSummary:
        """Finish the file: give it its final name, or quarantine it.

        Raises:
            SnapshotCorruptError: It was quarantined; the error names its new path.
            StorageError: The disk failed.
        """
        try:
            if self._failure is not None:
                raise self._failure
            summary = self._verifier.finish()
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

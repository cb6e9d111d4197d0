"""Write a checkpoint so that its final name never shows an incomplete file.

This module has the part file and its sealing. ``format`` defines the content, ``generator``
decides when to write.

See: KIP-630, requirement 630.2, docs/architecture.md (A checkpoint).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from quorum.errors import DiskFullError, QuorateError, StorageError
from quorum.incarnation import FIRST_INCARNATION, LogIncarnation
from quorum.ports import File, FileSystem
from quorum.types import ReplicaKey, SnapshotId, TaggedFields, Voter
from snapshot.format import CheckpointHead, FileDigest, checkpoint_batches
from snapshot.naming import OWN_PART_LABEL, FileState, file_path

SYNC_BYTES = 16 << 20
"""Sync interval of our own checkpoint: one large sync would delay the log's own syncs."""
DOWNLOAD_SYNC_BYTES = 256 << 20
"""Sync interval of a download: the log does not grow meanwhile, so no log sync is delayed."""


@dataclass(frozen=True, slots=True)
class CheckpointInfo:
    """A checkpoint that was written and sealed."""

    snapshot_id: SnapshotId
    size_bytes: int
    records: int
    """Data records, control records not counted."""
    digest: bytes
    """The file digest; see ``format.FileDigest``."""
    duration_ms: int = 0
    """Duration by a monotonic clock; 0 if not measured."""


@dataclass(frozen=True, slots=True)
class CheckpointProgress:
    """Progress of a write; the total is not known before the end."""

    records: int
    size_bytes: int


Progress: TypeAlias = Callable[[CheckpointProgress], None]


class CheckpointCancelled(QuorateError):  # noqa: N818 - asked for, so not an error
    """A checkpoint was cancelled on request; its file was removed."""


class PartFile:
    """A checkpoint under construction: ``append`` until complete, then ``seal`` or ``discard``.

    Owned by one writer or one download. The final name does not exist before ``seal``
    returns.
    """

    def __init__(
        self,
        fs: FileSystem,
        directory: Path,
        snapshot_id: SnapshotId,
        *,
        label: str = "",
        sync_bytes: int = SYNC_BYTES,
        reserve_bytes: int = 0,
        keeps_content: bool = False,
    ) -> None:
        """Create the file; empty an existing one unless ``keeps_content``.

        The file is synced after every ``sync_bytes``. It leaves ``reserve_bytes`` free, if the
        file system reports its free space.

        Raises:
            StorageError: The file cannot be created.
        """
        self.snapshot_id = snapshot_id
        self.path = file_path(directory, snapshot_id, FileState.PART, label=label)
        self._fs = fs
        self._directory = directory
        self._sync_bytes = sync_bytes
        self._reserve_bytes = reserve_bytes
        self._has_left = False
        self._file: File | None = fs.open(self.path, create=True, writable=True)
        if not keeps_content:
            self._file.truncate(0)
        self.size_bytes = self._file.size()
        # How much an earlier process run made durable is unknown.
        self._unsynced = self.size_bytes

    def read_at(self, position: int, size: int) -> bytes:
        """Return up to ``size`` bytes from ``position`` on; fewer only at the end of the file.

        Raises:
            StorageError: The bytes cannot be read.
        """
        return self._opened().read_at(position, size)

    def cut_to(self, size_bytes: int) -> None:
        """Truncate the file to its first ``size_bytes``.

        Raises:
            StorageError: The disk failed.
        """
        if size_bytes < self.size_bytes:
            self._opened().truncate(size_bytes)
            self.size_bytes = self._unsynced = size_bytes

    def append(self, data: bytes) -> None:
        """Write at the end; sync after every ``sync_bytes``.

        Raises:
            StorageError: ``DiskFullError`` if there is no space but the reserve; the file keeps
                its former length.
        """
        file = self._opened()
        if self._reserve_bytes:
            self._look_for_room(len(data))
        file.append(data)
        self.size_bytes += len(data)
        self._unsynced += len(data)
        if self._unsynced >= self._sync_bytes:
            self._sync(file)
            self._unsynced = 0

    def seal(self, state: FileState = FileState.SEALED) -> Path:
        """Rename the file to its final name, or that of another ``state``; return the new path.

        Durability: the content is synced before the rename and the folder after it, so after a
        crash the name exists with all content, or not at all.

        Raises:
            StorageError: The rename failed, or may not be durable.
        """
        file = self._opened()
        self._sync(file)
        file.close()
        self._file = None
        final = file_path(self._directory, self.snapshot_id, state)
        self._fs.rename(self.path, final)
        self._has_left = True
        self._fs.sync_directory(self._directory)
        return final

    def _sync(self, file: File) -> None:
        try:
            file.sync()
        except StorageError:
            # Unwritten data may still be readable, and the next sync may claim success. A later
            # process run must not find this file and resume it.
            self.discard()
            raise

    def close(self) -> None:
        """Keep the file for a later process run; no effect if it is closed already."""
        self._has_left = True
        if self._file is not None:
            self._file.close()
            self._file = None

    def discard(self) -> None:
        """Remove the file; does nothing after ``seal`` or ``close``."""
        if self._has_left:
            return
        self._has_left = True
        if self._file is not None:
            self._file.close()
            self._file = None
        self._fs.unlink(self.path)

    def _look_for_room(self, size_bytes: int) -> None:
        # Checked before every write, because the log grows on this disk as well.
        free = self._fs.free_bytes(self._directory)
        if free is not None and free < size_bytes + self._reserve_bytes:
            raise DiskFullError(
                f"{free} bytes free after {self.size_bytes} of the checkpoint, {size_bytes} more "
                f"and {self._reserve_bytes} in reserve needed",
                self.path,
            )

    def _opened(self) -> File:
        if self._file is None:
            raise QuorateError(f"{self.path}: is not open for writing")
        return self._file


def write_checkpoint(  # noqa: PLR0913 - what a checkpoint holds, by keyword
    fs: FileSystem,
    directory: Path,
    snapshot_id: SnapshotId,
    *,
    values: Iterable[bytes],
    last_contained_log_timestamp: int,
    log_digest: bytes = b"",
    kraft_version: int = 0,
    voters: Sequence[Voter] = (),
    state_digest: bytes | Callable[[], bytes] = b"",
    tagged: TaggedFields = (),
    voters_tagged: TaggedFields = (),
    removed: Sequence[ReplicaKey] = (),
    incarnation: LogIncarnation = FIRST_INCARNATION,
    reserve_bytes: int = 0,
    progress: Progress | None = None,
    is_cancelled: Callable[[], bool] | None = None,
) -> CheckpointInfo:
    """Write and seal one checkpoint; on any exception its file is removed.

    ``values`` is consumed lazily, a batch at a time; an exception from it ends the write.
    ``state_digest`` may be a function, called once ``values`` is exhausted. ``reserve_bytes``
    stay free, see ``PartFile``. ``progress`` and ``is_cancelled`` are called after each batch, in
    the calling thread; ``progress`` may block to slow the write down. A sealed file of the same id
    is replaced by the same bytes.

    Raises:
        CheckpointCancelled: ``is_cancelled`` returned true.
        QuorumUsageError: The content cannot be stored; see ``checkpoint_batches``.
        StorageError: The disk failed, or is full (``DiskFullError``). After a failed sync the
            caller must stop the node.
    """
    head = CheckpointHead(
        last_contained_log_timestamp,
        log_digest,
        kraft_version,
        tuple(voters),
        tagged,
        voters_tagged,
        tuple(removed),
        incarnation=incarnation,
    )
    part = PartFile(fs, directory, snapshot_id, label=OWN_PART_LABEL, reserve_bytes=reserve_bytes)
    digest = FileDigest()
    records = 0
    try:
        for batch, count in checkpoint_batches(snapshot_id, head, values, state_digest):
            part.append(batch)
            digest.add(batch)
            records += count
            if progress is not None:
                progress(CheckpointProgress(records, part.size_bytes))
            if is_cancelled is not None and is_cancelled():
                raise CheckpointCancelled(f"checkpoint {snapshot_id} was cancelled")
        part.seal()
    finally:
        part.discard()
    return CheckpointInfo(snapshot_id, part.size_bytes, records, digest.value())

"""The checkpoint files of one partition directory: ``ports.SnapshotStore`` on a file system.

It lists the files, serves chunks of them, retires and quarantines them. It looks every name up in
the directory, and caches only digests and open files. The core decides which snapshots to keep
(630.6).

See: KIP-630, requirements 630.2, 630.6, 630.9, docs/reference/formats.md#checkpoint.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from quorum.control_records import Voters
from quorum.errors import QuorumUsageError, SnapshotCorruptError, StorageError
from quorum.ports import Clock, File, FileSystem
from quorum.types import SnapshotId
from snapshot.config import SnapshotConfig
from snapshot.download import Download, FoundDownload, without_room
from snapshot.leases import LeaseTable
from snapshot.naming import FileState, file_name, file_path, parse_name
from snapshot.reader import CheckpointReader
from snapshot.verifier import CheckpointSummary
from snapshot.writer import CheckpointInfo


@dataclass(frozen=True, slots=True)
class QuarantinedFile:
    """A checkpoint file that was set aside because its content is invalid."""

    snapshot_id: SnapshotId
    path: Path
    reason: str
    """Empty for a file found at start: an earlier process reported the reason."""


def _order(snapshot_id: SnapshotId) -> tuple[int, int]:
    return snapshot_id.offset, snapshot_id.epoch


class DirectorySnapshotStore:
    """Checkpoints in one directory.

    Written to from the writer thread only; ``list``, ``size``, ``read_chunk``, ``file_digest``,
    ``leased`` and ``reader`` may be called from any thread. At most one download at a time.

    Invariants:
        1. A name ending in ``.checkpoint`` is complete: its content was verified during the
           download, or written here, and synced before the rename.
        2. A leased file is not deleted.
    """

    def __init__(
        self, fs: FileSystem, directory: Path, clock: Clock, config: SnapshotConfig | None = None
    ) -> None:
        """Use ``directory``, which is created with the first file. Touches no file."""
        self.directory = directory
        self._fs = fs
        self._clock = clock
        self._leases = LeaseTable((config or SnapshotConfig()).lease_ms)
        self._digests: dict[SnapshotId, bytes] = {}
        self._download: Download | None = None
        self._given_up: FoundDownload | None = None
        self._postponed: set[SnapshotId] = set()
        self._reasons: dict[Path, str] = {}
        self.on_begun: Callable[[SnapshotId], None] | None = None
        """Called for each read at the beginning of a file, on the reading thread."""

    def clean_up(self) -> tuple[str, ...]:
        """Remove the leftovers of a stopped process; call once, before anything else.

        Removed are part files and files whose deletion had begun. The newest download is kept for
        ``recover_download``, except on a full disk: a download can be repeated, but a node whose
        log has no space cannot start.

        Returns:
            The removed names.

        Raises:
            StorageError: The disk failed.
        """
        kept = self._left_download()
        if kept is not None and (found := without_room(self._fs, self.directory, kept)):
            self._given_up, kept = found, None
        spared = "" if kept is None else file_name(kept, FileState.PART)
        last_pass = [
            name
            for name, _, state in self._files()
            if state in (FileState.PART, FileState.DELETED) and name != spared
        ]
        for name in last_pass:
            self._fs.unlink(self.directory / name)
        if last_pass:
            self._fs.sync_directory(self.directory)
        return tuple(last_pass)

    def _left_download(self) -> SnapshotId | None:
        """Return the newest download of an earlier process run, unless it is sealed here."""
        left = (
            found
            for name, found, state in self._files()
            if state is FileState.PART and name == file_name(found, state)
        )
        newest = max(left, key=_order, default=None)
        return None if newest is None or newest in self._sealed_ids() else newest

    def _files(self) -> Iterable[tuple[str, SnapshotId, FileState]]:
        for name in self._fs.list_directory(self.directory):
            parsed = parse_name(name)
            if parsed is not None:
                yield name, *parsed

    def _sealed(self) -> dict[SnapshotId, str]:
        return {found: name for name, found, state in self._files() if state is FileState.SEALED}

    def _sealed_ids(self) -> Iterable[SnapshotId]:
        return (found for _, found, state in self._files() if state is FileState.SEALED)

    def list(self) -> tuple[SnapshotId, ...]:
        """Return the sealed checkpoints, ascending, with the bootstrap one (0, 0) if present."""
        return tuple(sorted(self._sealed_ids(), key=_order))

    def latest(self) -> SnapshotId | None:
        """Return the newest sealed checkpoint."""
        return max(self._sealed_ids(), key=_order, default=None)

    def path(self, snapshot_id: SnapshotId) -> Path:
        """Return the path of a sealed checkpoint.

        Raises:
            StorageError: There is none.
        """
        path = file_path(self.directory, snapshot_id)
        if self._fs.exists(path):
            return path
        # Other software may write epochs of 20 digits.
        name = self._sealed().get(snapshot_id)
        if name is None:
            raise StorageError(f"no checkpoint {snapshot_id}", self.directory)
        return self.directory / name

    def reader(self, snapshot_id: SnapshotId) -> CheckpointReader:
        """Return a verifying reader; a complete pass through it also caches ``file_digest``.

        Raises:
            StorageError: There is no such checkpoint.
        """

        def remember(summary: CheckpointSummary) -> None:
            self._digests[snapshot_id] = summary.digest

        return CheckpointReader(
            self.path(snapshot_id), fs=self._fs, snapshot_id=snapshot_id, on_verified=remember
        )

    def _open(self, snapshot_id: SnapshotId) -> File:
        return self._fs.open(self.path(snapshot_id))

    def size(self, snapshot_id: SnapshotId) -> int:
        """Return the bytes of the whole file.

        Raises:
            StorageError: There is no such checkpoint.
        """
        size = self._leases.size(snapshot_id)
        if size is not None:
            return size
        file = self._open(snapshot_id)
        try:
            return file.size()
        finally:
            file.close()

    def read_chunk(self, snapshot_id: SnapshotId, position: int, max_bytes: int) -> bytes:
        """Return a chunk of the file, independent of batch limits; take or renew a lease.

        Empty behind the end of the file.

        Raises:
            QuorumUsageError: A negative position or size.
            StorageError: There is no such checkpoint, or it cannot be read.
        """
        if position < 0 or max_bytes < 0:
            raise QuorumUsageError(f"chunk of {max_bytes} bytes at position {position}")
        chunk = self._leases.read(
            snapshot_id, position, max_bytes, now_ms=self._clock.now_ms(), open_file=self._open
        )
        if position == 0 and self.on_begun is not None:
            self.on_begun(snapshot_id)
        return chunk

    def file_digest(self, snapshot_id: SnapshotId) -> bytes:
        """Return the digest of the whole file (``format.FileDigest``); cached once known.

        Only the first call for a file that was not written here reads and verifies the file.

        Raises:
            SnapshotCorruptError: The file is damaged.
            StorageError: There is no such checkpoint, or it cannot be read.
        """
        known = self._digests.get(snapshot_id)
        if known is not None:
            return known
        return self.verify(snapshot_id).digest

    def log_digest(self, snapshot_id: SnapshotId) -> bytes:
        """Return the running log digest at the checkpoint's end from its header; empty if absent.

        Raises:
            SnapshotCorruptError: The first batch is damaged.
        """
        return self.reader(snapshot_id).head().log_digest

    def remember(self, info: CheckpointInfo) -> None:
        """Cache the digest of a checkpoint just written, so that it is not read again for it."""
        self._digests[info.snapshot_id] = info.digest

    # ------------------------------------------------------------------ download

    def begin_download(self, snapshot_id: SnapshotId) -> None:
        """Create an empty part file; abandon a download under way.

        Raises:
            StorageError: The disk failed.
        """
        if self._download is not None:
            self._download.abandon()
            self._download = None
        self._download = Download(self._fs, self.directory, snapshot_id)

    def recover_download(self) -> FoundDownload | None:
        """Resume the download of an earlier process run; call once, after ``clean_up``.

        The download is then under way at the position in the result. If no byte could be kept, its
        file is removed. Unreadable content counts as damaged.

        Returns:
            What was found and kept, or removed by ``clean_up``; None if there was nothing.

        Raises:
            StorageError: The file could not be cut or removed.
        """
        snapshot_id = self._left_download()
        if snapshot_id is None:
            return self._given_up
        try:
            download = Download(self._fs, self.directory, snapshot_id, keeps_content=True)
        except StorageError as error:
            # A download can be repeated, so the node must still start.
            self._fs.unlink(self.directory / file_name(snapshot_id, FileState.PART))
            return FoundDownload(snapshot_id, 0, 0, f"cannot be opened: {error}")
        found = download.recover()
        if found.size_bytes:
            self._download = download
        return found

    def _downloading(self, snapshot_id: SnapshotId) -> Download:
        download = self._download
        if download is None or download.snapshot_id != snapshot_id:
            raise QuorumUsageError(f"no download of {snapshot_id} is under way")
        return download

    def write_chunk(self, snapshot_id: SnapshotId, position: int, chunk: bytes) -> None:
        """Append a chunk to the part file and verify it; ``seal_download`` reports corruption.

        Raises:
            QuorumUsageError: Not the download under way, or ``position`` is not its length.
            StorageError: The disk failed.
        """
        self._downloading(snapshot_id).write(position, chunk)

    def seal_download(self, snapshot_id: SnapshotId, file_digest: bytes = b"") -> Voters:
        """Finish verification, then make the file durable under its final name.

        A non-empty ``file_digest`` must match.

        Returns:
            The checkpoint's voter set; empty if it has none.

        Raises:
            QuorumUsageError: Not the download under way.
            SnapshotCorruptError: The file was quarantined and is listed in ``quarantined``.
            StorageError: The disk failed.
        """
        download = self._downloading(snapshot_id)
        self._download = None
        try:
            summary = download.seal(file_digest)
        except SnapshotCorruptError as error:
            self._reasons[Path(str(error.path))] = str(error)
            raise
        self._leases.drop(snapshot_id)
        self._postponed.discard(snapshot_id)
        self._digests[snapshot_id] = summary.digest
        head = summary.head
        return Voters(head.voters, head.voters_tagged, head.removed, incarnation=head.incarnation)

    def abandon_download(self, snapshot_id: SnapshotId) -> None:
        """Remove the part file if this download is under way.

        Raises:
            StorageError: The disk failed.
        """
        if self._download is not None and self._download.snapshot_id == snapshot_id:
            self._download.abandon()
            self._download = None

    # ------------------------------------------------------------------ retirement

    def delete(self, snapshot_ids: Iterable[SnapshotId]) -> None:
        """Rename to ``.deleted`` and unlink; unknown ids are ignored.

        A leased file is kept; a later call removes it when its lease has expired.

        Raises:
            StorageError: The disk failed.
        """
        wanted = self._postponed | set(snapshot_ids)
        if not wanted:
            return
        held = set(self._leases.held(self._clock.now_ms()))
        sealed = self._sealed()
        self._postponed = wanted & held & sealed.keys()
        last_pass = sorted((wanted - held) & sealed.keys(), key=_order)
        if not last_pass:
            return
        for snapshot_id in last_pass:
            path = self.directory / sealed[snapshot_id]
            retired = file_path(self.directory, snapshot_id, FileState.DELETED)
            self._fs.rename(path, retired)
            self._fs.unlink(retired)
            self._digests.pop(snapshot_id, None)
        self._fs.sync_directory(self.directory)

    def leased(self, now_ms: int) -> tuple[SnapshotId, ...]:
        """Return the checkpoints with a valid lease; close those whose lease expired."""
        return self._leases.held(now_ms)

    # ------------------------------------------------------------------ quarantine

    def verify(self, snapshot_id: SnapshotId) -> CheckpointSummary:
        """Read a sealed file from end to end; quarantine it if it is corrupt.

        Raises:
            SnapshotCorruptError: It was quarantined; the error has the new path and the cause.
            StorageError: There is no such checkpoint, or it cannot be read.
        """
        try:
            return self.reader(snapshot_id).verify()
        except SnapshotCorruptError as error:
            quarantined = self.quarantine(snapshot_id, str(error))
            raise SnapshotCorruptError(f"{error}; moved here", quarantined) from error

    def quarantine(self, snapshot_id: SnapshotId, reason: str) -> Path:
        """Set a sealed file aside under another name, for analysis.

        A file of the same id that was set aside before is replaced.

        Returns:
            The new path.

        Raises:
            StorageError: There is no such checkpoint, or the disk failed.
        """
        path = self.path(snapshot_id)
        target = file_path(self.directory, snapshot_id, FileState.CORRUPT)
        self._leases.drop(snapshot_id)
        self._digests.pop(snapshot_id, None)
        self._postponed.discard(snapshot_id)
        self._fs.rename(path, target)
        self._fs.sync_directory(self.directory)
        self._reasons[target] = reason
        return target

    @property
    def quarantined(self) -> tuple[QuarantinedFile, ...]:
        """Quarantined files, those of earlier processes included, ascending."""
        found: builtins.list[QuarantinedFile] = []
        for name, snapshot_id, state in self._files():
            if state is FileState.CORRUPT:
                path = self.directory / name
                found.append(QuarantinedFile(snapshot_id, path, self._reasons.get(path, "")))
        return tuple(found)

    def close(self) -> None:
        """Close every file. A download under way stays, for the next process run to resume."""
        self._leases.close()
        if self._download is not None:
            self._download.close()
            self._download = None

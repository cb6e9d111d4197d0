"""Ports of the runtime to the outside, as protocols with one contract each.

``FileSystem`` and ``Clock`` also have simulated implementations; both file systems pass the same
contract tests. The three stores have one implementation each: their ports keep the runtime from
importing the log and the checkpoints. ``FileSystem``, ``LogStore``, ``SnapshotStore`` and
``ElectionStore`` may block: only the writer thread writes to them. Any thread may call ``read`` of
the first two for written data.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from quorum.batch import BatchHeader
from quorum.control_records import Voters
from quorum.types import (
    DigestAt,
    ElectionState,
    EpochStart,
    OffsetAndEpoch,
    SnapshotId,
)


class File(Protocol):
    """An open file. Offsets in bytes; writes are unbuffered but not durable before ``sync``."""

    def read_at(self, position: int, size: int) -> bytes:
        """Return up to ``size`` bytes; fewer only at the end of the file."""

    def append(self, data: bytes) -> int:
        """Write all of ``data`` at the end and return the position where it begins.

        Raises:
            DiskFullError: No space; the file has its former length again.
            StorageError: Any other failure.
        """

    def write_at(self, position: int, data: bytes) -> None:
        """Overwrite at ``position``."""

    def truncate(self, size: int) -> None:
        """Cut the file to ``size`` bytes."""

    def sync(self) -> None:
        """Make content and length durable (fdatasync).

        Raises:
            StorageError: The data may or may not be on disk; the caller must stop (fsyncgate).
        """

    def size(self) -> int:
        """Return the length in bytes."""

    def close(self) -> None:
        """Release the descriptor. Does not sync."""


class FileSystem(Protocol):
    """The few operations that our files need, so that a simulated disk can replace them.

    All raise ``StorageError`` naming the path, never a bare ``OSError``.
    """

    def open(self, path: Path, *, create: bool = False, writable: bool = False) -> File:
        """Open a file; with ``create`` create a missing one (its name is not durable yet)."""

    def exists(self, path: Path) -> bool:
        """Whether a file or directory of that name exists."""

    def list_directory(self, path: Path) -> list[str]:
        """Return the sorted names in it; empty if it does not exist."""

    def make_directory(self, path: Path) -> None:
        """Create it with its parents; no effect if it exists."""

    def rename(self, old: Path, new: Path) -> None:
        """Replace ``new`` atomically. Durable after ``sync_directory`` of the folder."""

    def unlink(self, path: Path) -> None:
        """Remove a file; no effect if it does not exist."""

    def sync_directory(self, path: Path) -> None:
        """Make creations, renames and removals in it durable."""

    def free_bytes(self, path: Path) -> int | None:
        """Return the free bytes below an existing directory, as an estimate; None if unknown.

        Never raises.
        """

    def modified_ms(self, path: Path) -> int | None:
        """Return the time of a file's last change in milliseconds since 1970, by this machine's
        clock at that time; None if unknown. Never raises.
        """


class LogStore(Protocol):
    """The replicated log on disk: whole record batches at contiguous offsets.

    Owned by the writer thread. Other threads may call ``read`` alone, below the written end.
    """

    @property
    def start(self) -> OffsetAndEpoch:
        """First kept offset and the epoch of the record before it."""

    @property
    def end(self) -> OffsetAndEpoch:
        """Written end (exclusive) and the epoch of the last record (or of ``start``)."""

    @property
    def epochs(self) -> tuple[EpochStart, ...]:
        """The epoch history, ascending."""

    def append(
        self,
        data: bytes,
        *,
        base_offset: int,
        end_offset: int,
        epochs: Sequence[EpochStart] = (),
        headers: Sequence[BatchHeader] = (),
    ) -> None:
        """Write batches at the end; not durable before ``flush``.

        ``headers`` are those of ``data`` if this process has verified or encoded the batches; else
        ``data`` is read and verified here.

        Raises:
            StorageError: ``DiskFullError`` if there is no space (log unchanged).
        """

    def flush(self) -> None:
        """Make all written data durable, with directory entries of new segments."""

    def truncate_to(self, end_offset: int) -> None:
        """Cut to ``end_offset`` (a batch boundary); durable after ``flush``."""

    def replace_with(self, snapshot_id: SnapshotId, *, digest: bytes = b"") -> None:
        """Empty the log: start = end = the snapshot's position. A stored, repeatable plan.

        ``digest`` is the running log digest there; empty if it cannot be compared.
        """

    def advance_start(self, start: OffsetAndEpoch) -> None:
        """Raise the log start (stored durably first), then delete segments wholly below it."""

    def read(self, offset: int, max_bytes: int, *, end_offset: int | None = None) -> bytes:
        """Return whole batches from the one containing ``offset`` on; at least one if any exists
        below ``end_offset``; otherwise no more than ``max_bytes``.
        """

    def store_high_watermark(self, high_watermark: int) -> None:
        """Make the lower bound durable, together with the present flushed end."""

    def digest_at(self, offset: int, *, prove: bool = False) -> bytes:
        """Return the running digest of all records below ``offset``; empty if unknown.

        With ``prove`` the data read for it is verified by its checksums.
        """

    def digest_before(self, offset: int) -> DigestAt:
        """Return the digest at the last boundary at or below ``offset``; (-1, empty) for none."""

    @property
    def tip(self) -> tuple[OffsetAndEpoch, bytes]:
        """The written end and the digest there, read at one moment."""

    def quarantine(self, offset: int, cause: str) -> None:
        """Mark durably that from ``offset`` on a majority has another history."""


class ElectionStore(Protocol):
    """``quorum-state``: after any crash it has either the old or the new content."""

    def load(self) -> ElectionState:
        """Return the stored state, or the default if the file does not exist.

        Raises:
            ElectionStateError: Unreadable, checksum wrong, or a future version.
        """

    def save(self, state: ElectionState) -> None:
        """Replace it durably (temp, fsync, rename, directory fsync)."""


class SnapshotStore(Protocol):
    """Checkpoint files of one partition directory."""

    def list(self) -> tuple[SnapshotId, ...]:
        """Return the sealed checkpoints, ascending, with the bootstrap one (0, 0) if present."""

    def size(self, snapshot_id: SnapshotId) -> int:
        """Return the bytes of the whole file."""

    def read_chunk(self, snapshot_id: SnapshotId, position: int, max_bytes: int) -> bytes:
        """Return a chunk of the file, independent of batch limits; take or renew a lease."""

    def file_digest(self, snapshot_id: SnapshotId) -> bytes:
        """Return the digest of the whole file, cached after the first call."""

    def log_digest(self, snapshot_id: SnapshotId) -> bytes:
        """Return the running log digest at the checkpoint's end from its header; else empty."""

    def begin_download(self, snapshot_id: SnapshotId) -> None:
        """Create an empty ``.part`` file."""

    def write_chunk(self, snapshot_id: SnapshotId, position: int, chunk: bytes) -> None:
        """Append to the ``.part`` file; ``position`` must be its length."""

    def seal_download(self, snapshot_id: SnapshotId, file_digest: bytes = b"") -> Voters:
        """Verify every batch, header and footer, then fsync, rename, fsync the folder.

        A non-empty ``file_digest`` must match. Returns the checkpoint's voter set, empty if it has
        none.

        Raises:
            SnapshotCorruptError: The file was quarantined under another name and reported.
        """

    def abandon_download(self, snapshot_id: SnapshotId) -> None:
        """Remove the ``.part`` file if it exists."""

    def delete(self, snapshot_ids: Iterable[SnapshotId]) -> None:
        """Rename to ``.deleted`` and unlink; leased files are kept for a later call."""

    def leased(self, now_ms: int) -> tuple[SnapshotId, ...]:
        """Return the checkpoints with a valid lease."""


class Clock(Protocol):
    """Two clocks. Safety depends on neither."""

    def now_ms(self) -> int:
        """Return monotonic milliseconds, for deadlines."""

    def wall_ms(self) -> int:
        """Return milliseconds since 1970, for record timestamps only."""

"""What the runtime needs from the outside, as protocols with one contract each.

Every port has a real implementation and a fake, and both pass the same contract test.
Blocking is allowed in ``FileSystem``, ``LogStore``, ``SnapshotStore`` and ``ElectionStore``:
they are only written to from the writer thread. ``read`` of the first two may be called from
any thread for data that has been written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

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
        """Up to ``size`` bytes; fewer only at the end of the file."""

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
        """Length in bytes."""

    def close(self) -> None:
        """Release the descriptor. Does not sync."""


class FileSystem(Protocol):
    """The few operations our files are built from, so that a simulated disk can replace them.

    All raise ``StorageError`` naming the path, never a bare ``OSError``.
    """

    def open(self, path: Path, *, create: bool = False, writable: bool = False) -> File:
        """Open a file; with ``create`` make it if missing (the entry is not yet durable)."""

    def exists(self, path: Path) -> bool:
        """Whether a file or directory of that name exists."""

    def list_directory(self, path: Path) -> list[str]:
        """Names in it, sorted; empty when it does not exist."""

    def make_directory(self, path: Path) -> None:
        """Create it with its parents; nothing happens when it exists."""

    def rename(self, old: Path, new: Path) -> None:
        """Replace ``new`` atomically. Durable after ``sync_directory`` of the folder."""

    def unlink(self, path: Path) -> None:
        """Remove a file; nothing happens when it does not exist."""

    def sync_directory(self, path: Path) -> None:
        """Make creations, renames and removals in it durable."""

    def free_bytes(self, path: Path) -> int | None:
        """Bytes that may still be written below an existing directory, as far as anybody can say
        beforehand; None where nobody does. Never raises.
        """

    def modified_ms(self, path: Path) -> int | None:
        """When a file's content last changed, in milliseconds since 1970 by the clock that this
        machine had then; None where nobody knows. Never raises.
        """


class LogStore(Protocol):
    """The replicated log on disk: whole record batches at contiguous offsets.

    Owned by the writer thread. ``read`` alone may be called from other threads, below the
    written end.
    """

    @property
    def start(self) -> OffsetAndEpoch:
        """First offset kept and the epoch of the record before it."""

    @property
    def end(self) -> OffsetAndEpoch:
        """Written end (exclusive) and the epoch of the last record (or of ``start``)."""

    @property
    def epochs(self) -> tuple[EpochStart, ...]:
        """The epoch history, ascending."""

    def append(
        self, data: bytes, *, base_offset: int, end_offset: int, epochs: Sequence[EpochStart] = ()
    ) -> None:
        """Write batches at the end; not durable before ``flush``.

        Raises:
            StorageError: ``DiskFullError`` when there is no space (log unchanged).
        """

    def flush(self) -> None:
        """Make everything written durable, with directory entries of new segments."""

    def truncate_to(self, end_offset: int) -> None:
        """Cut to ``end_offset`` (a batch boundary); durable after ``flush``."""

    def replace_with(self, snapshot_id: SnapshotId, *, digest: bytes = b"") -> None:
        """Empty the log: start = end = the snapshot's position. A written, repeatable plan.

        ``digest`` is the running log digest there; empty: it cannot be compared.
        """

    def advance_start(self, start: OffsetAndEpoch) -> None:
        """Raise the log start (stored durably first), then delete segments wholly below it."""

    def read(self, offset: int, max_bytes: int, *, end_offset: int | None = None) -> bytes:
        """Whole batches from the one containing ``offset`` on; at least one if any exists
        below ``end_offset``; otherwise no more than ``max_bytes``.
        """

    def store_high_watermark(self, high_watermark: int) -> None:
        """Make the lower bound durable, and with it the end that is flushed now."""

    def digest_at(self, offset: int, *, prove: bool = False) -> bytes:
        """Running digest of everything below ``offset``; empty when not known (cannot compare).

        With ``prove`` what has to be read for it is held against its checksums.
        """

    def digest_before(self, offset: int) -> DigestAt:
        """The digest at the last batch boundary at or below ``offset``; (-1, empty) for none."""

    @property
    def tip(self) -> tuple[OffsetAndEpoch, bytes]:
        """The written end and the digest there, of one moment."""

    def quarantine(self, offset: int, cause: str) -> None:
        """Durably note that from ``offset`` on a majority holds another history."""


class ElectionStore(Protocol):
    """``quorum-state``: survives any crash with either the old or the new content."""

    def load(self) -> ElectionState:
        """The stored state, or the default when the file does not exist.

        Raises:
            ElectionStateError: Unreadable, checksum wrong, or a future version.
        """

    def save(self, state: ElectionState) -> None:
        """Replace it durably (temp, fsync, rename, directory fsync)."""


class SnapshotStore(Protocol):
    """Checkpoint files of one partition directory."""

    def list(self) -> tuple[SnapshotId, ...]:
        """Frozen checkpoints, ascending; includes the bootstrap one (0, 0) if present."""

    def size(self, snapshot_id: SnapshotId) -> int:
        """Bytes of the whole file."""

    def read_chunk(self, snapshot_id: SnapshotId, position: int, max_bytes: int) -> bytes:
        """A slice of the file, cut without regard to batches; takes or renews a lease."""

    def file_digest(self, snapshot_id: SnapshotId) -> bytes:
        """Digest of the whole file, cached after the first call."""

    def log_digest(self, snapshot_id: SnapshotId) -> bytes:
        """The running log digest at the checkpoint's end, from its header; empty if it has none."""

    def begin_download(self, snapshot_id: SnapshotId) -> None:
        """Open an empty ``.part`` file."""

    def write_chunk(self, snapshot_id: SnapshotId, position: int, chunk: bytes) -> None:
        """Append to the ``.part`` file; ``position`` must be its length."""

    def seal_download(self, snapshot_id: SnapshotId, file_digest: bytes = b"") -> Voters:
        """Verify every batch, header and footer, then fsync, rename, fsync the folder.

        Unless empty, ``file_digest`` must be that of the file. Returns the voter set the
        checkpoint carries (empty when it carries none).

        Raises:
            SnapshotCorruptError: The file was quarantined under another name and reported.
        """

    def abandon_download(self, snapshot_id: SnapshotId) -> None:
        """Remove the ``.part`` file if there is one."""

    def delete(self, snapshot_ids: Iterable[SnapshotId]) -> None:
        """Rename to ``.deleted`` and unlink; leased files are kept for a later pass."""

    def leased(self, now_ms: int) -> tuple[SnapshotId, ...]:
        """Those being read by transfers whose lease has not expired."""


class Clock(Protocol):
    """Two clocks. Safety rests on neither."""

    def now_ms(self) -> int:
        """Monotonic milliseconds, for deadlines."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970, for record timestamps only."""

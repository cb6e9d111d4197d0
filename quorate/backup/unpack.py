"""Write the log of a backup into a partition directory, up to a chosen position."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from quorate.backup.check import verified_checkpoint, verified_chunks, verified_content
from quorate.backup.errors import BackupDamagedError, NotInBackupError
from quorate.backup.incarnations import incarnation_after
from quorate.backup.manifest import Manifest
from quorate.backup.storage import Storage
from quorate.timetravel.moments import time_text
from quorum.batch import BatchHeader
from quorum.incarnation import FIRST_INCARNATION, LogIncarnation
from quorum.log.config import LogConfig
from quorum.log.recovery import open_log
from quorum.ports import FileSystem
from quorum.types import ZERO_UUID, OffsetAndEpoch, SnapshotId, Uuid
from snapshot.format import CheckpointHead
from snapshot.naming import file_path

Progress = Callable[[int], None]
"""Receives the offset up to which the log is written."""


@dataclass(frozen=True, slots=True)
class Unpacked:
    """A log that was written from a backup."""

    partition: Path
    end: OffsetAndEpoch
    log_digest: bytes
    """Log digest at ``end``; empty if not known."""
    size_bytes: int
    incarnation: LogIncarnation
    """That of the log at ``end``."""


def end_at_time(storage: Storage, manifest: Manifest, time_ms: int) -> int:
    """Return the offset in front of the first batch that was appended after ``time_ms``.

    Raises:
        NotInBackupError: The backup begins later.
        BackupDamagedError: It is not intact.
    """
    head = verified_checkpoint(storage, manifest)
    if head is not None and head.last_contained_log_timestamp > time_ms:
        raise NotInBackupError(
            f"the backup begins with a checkpoint of {time_text(head.last_contained_log_timestamp)}"
            f", as of offset {manifest.start.offset}: earlier states are not in it"
        )
    for _, _, headers in verified_chunks(storage, manifest):
        for header in headers:
            if header.max_timestamp > time_ms:
                return header.base_offset
    return manifest.end.offset


def checked_end(manifest: Manifest, end_offset: int | None) -> int:
    """Return the offset to restore to; None stands for the end of the backup.

    Raises:
        NotInBackupError: The backup does not reach ``end_offset``, or begins above it.
    """
    wanted = manifest.end.offset if end_offset is None else end_offset
    if not manifest.start.offset <= wanted <= manifest.end.offset:
        raise NotInBackupError(
            f"the backup has the states as of offsets {manifest.start.offset} to "
            f"{manifest.end.offset}, not of {wanted}"
        )
    return wanted


def unpack(
    storage: Storage,
    manifest: Manifest,
    fs: FileSystem,
    partition: Path,
    *,
    end_offset: int | None = None,
    owner: Uuid = ZERO_UUID,
    config: LogConfig | None = None,
    progress: Progress | None = None,
) -> Unpacked:
    """Write checkpoint and log into ``partition``, which must not exist or be empty.

    The log ends at ``end_offset`` or, if that is inside a batch, in front of it; None means all of
    it. ``owner`` is the disk's directory id. Everything written is verified, and is durable when
    this returns. The directory is no node's: it has no identity and no election state.

    Raises:
        NotInBackupError: The backup does not reach ``end_offset``, or begins above it.
        BackupDamagedError: A file is missing or damaged.
        StorageError: The disk or the target failed.
    """
    wanted = checked_end(manifest, end_offset)
    fs.make_directory(partition)
    head = _write_checkpoint(storage, manifest, fs, partition)
    digests: dict[SnapshotId, bytes] = {}
    incarnation = FIRST_INCARNATION
    if head is not None:
        digests, incarnation = {manifest.start: head.log_digest}, head.incarnation
    log, _ = open_log(
        fs,
        partition,
        config,
        snapshots=tuple(digests),
        snapshot_digest=lambda snapshot_id: digests[snapshot_id],
        owner=owner,
    )
    try:
        for _, data, headers in verified_chunks(storage, manifest):
            kept = _below(headers, wanted)
            if not kept:
                break
            begin, end = kept[0].position, kept[-1].end_position
            log.append(
                data[begin:end], base_offset=kept[0].base_offset, end_offset=kept[-1].end_offset
            )
            for header in kept:
                incarnation = incarnation_after(incarnation, data, header)
            if progress is not None:
                progress(kept[-1].end_offset)
            if len(kept) < len(headers):
                break
        log.flush()
        log.store_high_watermark(log.end.offset)
        found = Unpacked(
            partition, log.end, log.digest_at(log.end.offset), log.size_bytes, incarnation
        )
    finally:
        log.close()
    return found


def _below(headers: list[BatchHeader], end_offset: int) -> list[BatchHeader]:
    return [header for header in headers if header.end_offset <= end_offset]


def _write_checkpoint(
    storage: Storage, manifest: Manifest, fs: FileSystem, partition: Path
) -> CheckpointHead | None:
    stored = manifest.checkpoint
    head = verified_checkpoint(storage, manifest)
    if stored is None or head is None:
        return None
    path = file_path(partition, stored.snapshot_id)
    part = path.with_name(path.name + ".part")
    file = fs.open(part, create=True, writable=True)
    try:
        file.truncate(0)
        for data in verified_content(storage, stored):
            file.append(data)
        file.sync()
    finally:
        file.close()
    fs.rename(part, path)
    fs.sync_directory(partition)
    if head.log_digest.hex() != manifest.start_digest:
        raise BackupDamagedError("the checkpoint has another log digest than the manifest")
    return head

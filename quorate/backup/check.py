"""Verify a backup: every file against the manifest, every batch, and the digest chain."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from quorate.backup.errors import BackupDamagedError
from quorate.backup.manifest import Manifest, StoredChunk, StoredFile, newest_manifest
from quorate.backup.storage import Storage
from quorum.batch import BatchHeader, scan_batches
from quorum.digest import fold
from quorum.errors import CorruptBatchError, SnapshotCorruptError
from quorum.types import EpochStart, OffsetAndEpoch
from snapshot.format import CheckpointHead
from snapshot.verifier import CheckpointVerifier

Progress = Callable[[int], None]
"""Receives the bytes read so far."""


@dataclass(slots=True)
class Verified:
    """A backup that was read from end to end."""

    manifest: Manifest
    notes: list[str]
    """Manifests that do not count, because they are not intact."""
    size_bytes: int = 0
    batches: int = 0
    problems: tuple[str, ...] = ()
    """What is wrong, one sentence each; empty if the backup is intact."""


def verify(storage: Storage, *, progress: Progress | None = None) -> Verified:
    """Read every file of the newest complete backup and compare it with the manifest.

    Raises:
        NoBackupError: There is none.
        BackupDamagedError: No manifest is intact.
        StorageError: The target cannot be read.
    """
    manifest, notes = newest_manifest(storage)
    found = Verified(manifest, notes)
    try:
        head = verified_checkpoint(storage, manifest)
        if head is not None and head.log_digest.hex() != manifest.start_digest:
            raise BackupDamagedError("the checkpoint has another log digest than the manifest")
        if manifest.checkpoint is not None:
            found.size_bytes += manifest.checkpoint.size_bytes
        epochs: list[EpochStart] = []
        for _, data, headers in verified_chunks(storage, manifest):
            found.size_bytes += len(data)
            found.batches += len(headers)
            for header in headers:
                if not epochs or header.epoch > epochs[-1].epoch:
                    epochs.append(EpochStart(header.epoch, header.base_offset))
            if progress is not None:
                progress(found.size_bytes)
        if tuple(epochs) != manifest.epochs:
            raise BackupDamagedError("the epochs of the batches are not those of the manifest")
    except BackupDamagedError as error:
        found.problems = (str(error),)
    return found


def verified_checkpoint(storage: Storage, manifest: Manifest) -> CheckpointHead | None:
    """Read the checkpoint of a backup; return its head, or None if there is none.

    Raises:
        BackupDamagedError: It is missing or damaged.
    """
    stored = manifest.checkpoint
    if stored is None:
        return None
    verifier = CheckpointVerifier(snapshot_id=stored.snapshot_id, path=stored.name)
    try:
        for data in verified_content(storage, stored):
            verifier.feed(data)
        return verifier.finish().head
    except SnapshotCorruptError as error:
        raise BackupDamagedError(str(error)) from error


def verified_content(storage: Storage, stored: StoredFile) -> Iterator[bytes]:
    """Yield a file's content; the end of the iteration proves it.

    Raises:
        BackupDamagedError: Missing, or another content than the manifest says.
    """
    digest = hashlib.sha256()
    size = 0
    for data in storage.read(stored.name):
        digest.update(data)
        size += len(data)
        yield data
    if (size, digest.hexdigest()) != (stored.size_bytes, stored.sha256):
        raise BackupDamagedError(f"{stored.name}: not the content that the manifest names")


def verified_chunks(
    storage: Storage, manifest: Manifest
) -> Iterator[tuple[StoredChunk, bytes, list[BatchHeader]]]:
    """Yield the log chunk by chunk: content and headers, each verified.

    Raises:
        BackupDamagedError: A chunk is missing or damaged, or does not follow the one before.
    """
    end, digest = manifest.start, bytes.fromhex(manifest.start_digest)
    for chunk in manifest.chunks:
        data = b"".join(verified_content(storage, chunk))
        try:
            headers = scan_batches(data)
        except CorruptBatchError as error:
            raise BackupDamagedError(f"{chunk.name}: {error}") from error
        for header in headers:
            if header.base_offset != end.offset or header.epoch < end.epoch:
                raise BackupDamagedError(
                    f"{chunk.name}: a batch of epoch {header.epoch} at offset "
                    f"{header.base_offset}, where {end} ends"
                )
            end = OffsetAndEpoch(header.end_offset, header.epoch)
            if digest:
                digest = fold(digest, data[header.position : header.end_position])
        if (end.offset, end.epoch, digest.hex()) != (
            chunk.end_offset,
            chunk.epoch,
            chunk.log_digest,
        ):
            raise BackupDamagedError(f"{chunk.name}: its end or log digest is not the manifest's")
        yield chunk, data, headers

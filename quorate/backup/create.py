"""Create a backup, or continue one: files first, the manifest that makes them a backup last.

The target is used in a thread: a slow store must not keep the source's connections waiting.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field

from quorate.backup.check import verified_content
from quorate.backup.errors import (
    BackupGapError,
    NoBackupError,
    NothingToCopyError,
    OtherHistoryError,
    TrimmedMeanwhileError,
)
from quorate.backup.incarnations import incarnation_after
from quorate.backup.manifest import (
    Manifest,
    StoredCheckpoint,
    StoredChunk,
    newest_manifest,
    write_manifest,
)
from quorate.backup.source import Source, SourceState
from quorate.backup.storage import Storage
from quorum.batch import scan_batches
from quorum.digest import EMPTY_LOG_DIGEST, fold
from quorum.errors import SnapshotCorruptError
from quorum.incarnation import FIRST_INCARNATION, LogIncarnation
from quorum.types import (
    LOG_BEGINNING,
    ZERO_UUID,
    EpochStart,
    OffsetAndEpoch,
    uuid_from_text,
    uuid_to_text,
)
from snapshot.verifier import CheckpointSummary, CheckpointVerifier

CHUNK_BYTES = 16 << 20
"""A chunk of the log is closed when it has this many bytes; it is held in memory until then."""
MERGED_BYTES = 1 << 20
"""A last chunk below this size is written again together with what is new. So the number of files
follows from the bytes of a backup, not from the number of its runs."""

ATTEMPTS_MAX = 3
"""Attempts of a run: the source may trim its log at any time."""

Progress = Callable[[int], None]
"""Receives the offset up to which the log is in the backup."""


async def create(
    source: Source,
    storage: Storage,
    *,
    tool_version: str,
    created_ms: int,
    chunk_bytes: int = CHUNK_BYTES,
    progress: Progress | None = None,
) -> tuple[Manifest, int]:
    """Copy what the target lacks, up to the source's committed end.

    Returns:
        The newest manifest and the number of bytes added; the former manifest if nothing is new.

    Raises:
        NothingToCopyError: There is no backup yet, and nothing is known to be committed.
        OtherHistoryError: The target has a backup of another cluster or history.
        BackupGapError: The source no longer has what follows the backup, or trimmed its log during
            each of ``ATTEMPTS_MAX`` attempts.
        BackupDamagedError: No manifest of the target is intact, or its last chunk is damaged.
        CorruptBatchError, SnapshotCorruptError: The source is damaged.
        StorageError: The target or the source failed.
    """
    attempts = 0
    while True:
        attempts += 1
        former = await _former(storage)
        try:
            return await _copy(
                source,
                storage,
                await source.state(),
                former,
                tool_version=tool_version,
                created_ms=created_ms,
                chunk_bytes=chunk_bytes,
                progress=progress,
            )
        except TrimmedMeanwhileError:
            if attempts == ATTEMPTS_MAX:
                raise
        except BackupGapError:
            # Behind a former backup the records are gone. A first one begins at the new log start.
            if former is not None or attempts == ATTEMPTS_MAX:
                raise


async def _former(storage: Storage) -> Manifest | None:
    try:
        return (await asyncio.to_thread(newest_manifest, storage))[0]
    except NoBackupError:
        return None


async def _copy(
    source: Source,
    storage: Storage,
    state: SourceState,
    former: Manifest | None,
    *,
    tool_version: str,
    created_ms: int,
    chunk_bytes: int,
    progress: Progress | None,
) -> tuple[Manifest, int]:
    if former is None:
        base = await _begin(source, storage, state)
    else:
        if former.cluster_id != state.cluster_id:
            raise OtherHistoryError(
                f"the target holds a backup of cluster {former.cluster_id}, and {state.name} is of "
                f"cluster {state.cluster_id or '(unknown)'}"
            )
        await source.check_continues(former.end, former.log_digest)
        base = _Base(
            former.start,
            former.start_digest,
            former.checkpoint,
            _incarnation_of(former),
            former.sequence,
        )
    log = _Log(storage, former, base, chunk_bytes)
    async for batch in source.batches(log.end.offset):
        await log.add(batch)
        if progress is not None:
            progress(log.end.offset)
    await log.close()
    if former is not None and log.end == former.end:
        return former, 0
    manifest = Manifest(
        sequence=base.sequence + 1,
        tool_version=tool_version,
        created_ms=created_ms,
        cluster_id=state.cluster_id,
        source=state.name,
        start=base.start,
        start_digest=base.digest,
        checkpoint=base.checkpoint,
        chunks=tuple(log.chunks),
        epochs=tuple(log.epochs),
        state_offset=state.state_offset,
        state_digest=state.state_digest.hex(),
        incarnation_number=log.incarnation.number,
        incarnation_id=uuid_to_text(log.incarnation.id) if any(log.incarnation.id) else "",
    )
    await asyncio.to_thread(write_manifest, storage, manifest)
    return manifest, manifest.size_bytes - (0 if former is None else former.size_bytes)


@dataclass(frozen=True, slots=True)
class _Base:
    """Where the log of a backup begins."""

    start: OffsetAndEpoch
    digest: str
    checkpoint: StoredCheckpoint | None
    incarnation: LogIncarnation = FIRST_INCARNATION
    """That of the log which is in the backup already; number and id only."""
    sequence: int = 0


def _incarnation_of(manifest: Manifest) -> LogIncarnation:
    """Return what a manifest has of the incarnation: number and id."""
    text = manifest.incarnation_id
    return LogIncarnation(manifest.incarnation_number, uuid_from_text(text) if text else ZERO_UUID)


async def _begin(source: Source, storage: Storage, state: SourceState) -> _Base:
    if state.end_offset == 0:
        raise NothingToCopyError(f"{state.name}: no record is known to be committed")
    if state.log_start == 0:
        return _Base(LOG_BEGINNING, EMPTY_LOG_DIGEST.hex(), None)
    snapshot_id, content = await source.checkpoint()
    name = f"checkpoints/{snapshot_id.offset:020d}-{snapshot_id.epoch:010d}.checkpoint"
    verifier = CheckpointVerifier(snapshot_id=snapshot_id, path=name)
    # Held in memory: it must be known to be intact before it is stored.
    parts = []
    digest = hashlib.sha256()
    async for data in content:
        verifier.feed(data)
        digest.update(data)
        parts.append(data)
    summary: CheckpointSummary = verifier.finish()
    if snapshot_id.offset > state.state_offset:
        # The manifest would have the digest of a state that the backup cannot reproduce.
        raise BackupGapError(f"{state.name}: the log was trimmed while it was read")
    await asyncio.to_thread(storage.write, name, parts)
    checkpoint = StoredCheckpoint(
        name, summary.size_bytes, digest.hexdigest(), snapshot_id.offset, snapshot_id.epoch
    )
    head = summary.head
    return _Base(snapshot_id, head.log_digest.hex(), checkpoint, head.incarnation)


@dataclass(slots=True)
class _Log:
    """The log of a backup, extended by whole batches."""

    storage: Storage
    former: Manifest | None
    base: _Base
    chunk_bytes: int
    chunks: list[StoredChunk] = field(init=False)
    epochs: list[EpochStart] = field(init=False)
    end: OffsetAndEpoch = field(init=False)
    incarnation: LogIncarnation = field(init=False)
    _digest: bytes = field(init=False)
    _parts: list[bytes] = field(default_factory=list)
    _size: int = 0
    _begin: int = field(init=False)

    def __post_init__(self) -> None:
        former = self.former
        self.chunks = [] if former is None else list(former.chunks)
        self.epochs = [] if former is None else list(former.epochs)
        self.incarnation = self.base.incarnation
        self.end = self.base.start if former is None else former.end
        self._digest = bytes.fromhex(self.base.digest if former is None else former.log_digest)
        self._begin = self.end.offset

    async def add(self, batch: bytes) -> None:
        """Append a whole batch, whose checksum the source has verified."""
        (header,) = scan_batches(batch)
        if header.base_offset != self.end.offset or header.epoch < self.end.epoch:
            raise SnapshotCorruptError(
                f"the source's log does not continue at offset {self.end.offset}", None
            )
        if not self._parts:
            await self._reopen()
        if header.epoch > self.end.epoch or not self.epochs:
            self.epochs.append(EpochStart(header.epoch, header.base_offset))
        self.end = OffsetAndEpoch(header.end_offset, header.epoch)
        self._digest = fold(self._digest, batch) if self._digest else b""
        self.incarnation = incarnation_after(self.incarnation, batch, header)
        self._parts.append(batch)
        self._size += len(batch)
        if self._size >= self.chunk_bytes:
            await self.close()

    async def _reopen(self) -> None:
        """Take a small last chunk of the former backup back, to store it with what follows."""
        last = self.chunks[-1] if self.chunks else None
        if self.former is None or last is None or last not in self.former.chunks:
            return
        if last.size_bytes < min(MERGED_BYTES, self.chunk_bytes):
            self._parts = [
                await asyncio.to_thread(lambda: b"".join(verified_content(self.storage, last)))
            ]
            self._size, self._begin = last.size_bytes, last.start_offset
            self.chunks.pop()

    async def close(self) -> None:
        """Store the batches that wait."""
        if not self._parts:
            return
        name = f"log/{self._begin:020d}-{self.end.offset:020d}.log"
        digest = hashlib.sha256()
        for part in self._parts:
            digest.update(part)
        await asyncio.to_thread(self.storage.write, name, self._parts)
        chunk = StoredChunk(
            name,
            self._size,
            digest.hexdigest(),
            self._begin,
            self.end.offset,
            self.end.epoch,
            self._digest.hex(),
        )
        self.chunks.append(chunk)
        self._parts.clear()
        self._size = 0
        self._begin = self.end.offset

"""The manifest of a backup: what belongs to it, and every digest to verify it with.

Each run that found something new writes a manifest of its own, after all files that it names. The
newest intact one counts. Its first line is the SHA-256 of the rest, so that one whose writing was
interrupted is not taken for a complete one.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from quorate.backup.errors import BackupDamagedError, NoBackupError
from quorate.backup.storage import Storage
from quorum.types import EpochStart, OffsetAndEpoch, SnapshotId

VERSION = 1
MANIFESTS_KEPT = 3
"""Manifests that stay after a newer one was written."""
_FILE_NAME = re.compile(r"log/[0-9]{20}-[0-9]{20}\.log|checkpoints/[0-9]{20}-[0-9]{10}\.checkpoint")
_CHUNK_NAME = re.compile(r"[0-9]{20}-[0-9]{20}\.log")
_NAME = re.compile(r"manifest-([0-9]{10})\.json")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of the backup."""

    name: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class StoredCheckpoint(StoredFile):
    """The state below the first chunk."""

    end_offset: int
    epoch: int
    """Epoch of the record before ``end_offset``."""

    @property
    def snapshot_id(self) -> SnapshotId:
        """Its position."""
        return SnapshotId(self.end_offset, self.epoch)


@dataclass(frozen=True, slots=True)
class StoredChunk(StoredFile):
    """Whole record batches of [start_offset, end_offset), as in a segment."""

    start_offset: int
    end_offset: int
    epoch: int
    """Epoch of its last record."""
    log_digest: str
    """Log digest at ``end_offset``, hexadecimal; empty if not known."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """A complete backup."""

    sequence: int
    tool_version: str
    created_ms: int
    """When it was made by the clock of the machine that made it, milliseconds since 1970."""
    cluster_id: str
    source: str
    start: OffsetAndEpoch
    """Where the log begins, with the epoch of the record before it."""
    start_digest: str
    checkpoint: StoredCheckpoint | None
    """None if the log begins at 0."""
    chunks: tuple[StoredChunk, ...]
    epochs: tuple[EpochStart, ...]
    state_offset: int
    state_digest: str
    """State digest as of ``state_offset``, as the source reported it."""
    incarnation_number: int = 0
    """Of the log at ``end`` (ADR 65)."""
    incarnation_id: str = ""
    """As text; empty for the first one."""

    @property
    def end(self) -> OffsetAndEpoch:
        """Where the backup ends: everything below is in it, and committed."""
        if not self.chunks:
            return self.start
        return OffsetAndEpoch(self.chunks[-1].end_offset, self.chunks[-1].epoch)

    @property
    def log_digest(self) -> str:
        """Log digest at ``end``, hexadecimal; empty if not known."""
        return self.chunks[-1].log_digest if self.chunks else self.start_digest

    @property
    def size_bytes(self) -> int:
        """Bytes of all files but the manifest."""
        return sum(each.size_bytes for each in self.files)

    @property
    def files(self) -> tuple[StoredFile, ...]:
        """Every file that belongs to it, beside the manifest itself."""
        return (*(() if self.checkpoint is None else (self.checkpoint,)), *self.chunks)


def manifest_name(sequence: int) -> str:
    """Return the name of the manifest of a run."""
    return f"manifest-{sequence:010d}.json"


def write_manifest(storage: Storage, manifest: Manifest) -> None:
    """Write a manifest; remove those older than the ones to keep, and chunks that none names."""
    body = json.dumps(
        {"format": "quorate-backup", "version": VERSION, **asdict(manifest)}, indent=1
    )
    data = body.encode()
    digest = hashlib.sha256(data).hexdigest().encode()
    storage.write(manifest_name(manifest.sequence), [digest + b"\n" + data])
    for sequence in _sequences(storage)[:-MANIFESTS_KEPT]:
        storage.remove(manifest_name(sequence))
    _remove_unnamed(storage)


def _remove_unnamed(storage: Storage) -> None:
    """Remove chunks that were merged into others, or were left by an interrupted run."""
    named: set[str] = set()
    for sequence in _sequences(storage):
        name = manifest_name(sequence)
        try:
            manifest = _parse(b"".join(storage.read(name)), name)
        except BackupDamagedError:
            return  # What it names is not known.
        named.update(each.name for each in manifest.files)
    for name in storage.names("log"):
        if _CHUNK_NAME.fullmatch(name) and f"log/{name}" not in named:
            storage.remove(f"log/{name}")


def newest_manifest(storage: Storage) -> tuple[Manifest, list[str]]:
    """Return the newest intact manifest, and why newer ones do not count.

    Raises:
        NoBackupError: There is none.
        BackupDamagedError: There are manifests, and none is intact.
    """
    problems: list[str] = []
    for sequence in reversed(_sequences(storage)):
        name = manifest_name(sequence)
        try:
            return _parse(b"".join(storage.read(name)), name), problems
        except BackupDamagedError as error:
            problems.append(str(error))
    if problems:
        raise BackupDamagedError("; ".join(problems))
    raise NoBackupError("no complete backup: there is no manifest")


def _sequences(storage: Storage) -> list[int]:
    found = (_NAME.fullmatch(name) for name in storage.names(""))
    return sorted(int(each[1]) for each in found if each)


def _parse(data: bytes, name: str) -> Manifest:
    digest, _, body = data.partition(b"\n")
    if digest.decode("ascii", "replace") != hashlib.sha256(body).hexdigest():
        raise BackupDamagedError(f"{name}: not intact, or its writing was interrupted")
    try:
        found = json.loads(body)
        if found["version"] != VERSION:
            raise BackupDamagedError(
                f"{name}: of version {found['version']}; this release reads {VERSION}"
            )
        manifest = _manifest(found)
    except (KeyError, TypeError, ValueError) as error:
        raise BackupDamagedError(f"{name}: not a manifest that this release reads") from error
    # Names are paths below the target; one that leads out of it was not written by us.
    strange = [each.name for each in manifest.files if not _FILE_NAME.fullmatch(each.name)]
    if strange:
        raise BackupDamagedError(f"{name}: names {strange[0]!r}, which is no file of a backup")
    return manifest


def _manifest(found: Mapping[str, Any]) -> Manifest:
    values = {key: value for key, value in found.items() if key not in ("format", "version")}
    checkpoint = values["checkpoint"]
    return Manifest(
        **{
            **values,
            "start": OffsetAndEpoch(**values["start"]),
            "checkpoint": None if checkpoint is None else StoredCheckpoint(**checkpoint),
            "chunks": tuple(StoredChunk(**each) for each in values["chunks"]),
            "epochs": tuple(EpochStart(**each) for each in values["epochs"]),
        }
    )

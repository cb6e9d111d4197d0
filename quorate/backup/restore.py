"""Make a voter's directory of a backup: the only voter of a new incarnation of the log.

The identity is written last. Without it a server refuses the directory, so an interrupted restore
is never taken for a complete one.

See: ADR 65.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from quorate.backup.manifest import Manifest
from quorate.backup.storage import Storage
from quorate.backup.unpack import Unpacked, unpack
from quorate.recovery.incarnation import Beginning, Begun, begin
from quorum.log.election_store import ElectionFile
from quorum.log.identity import MetaProperties
from quorum.log.layout import partition_directory
from quorum.ports import Clock, FileSystem
from quorum.types import ElectionState, Endpoint, Epoch, NodeId, Uuid

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Restoration:
    """The voter that a backup becomes."""

    node_id: NodeId
    directory_id: Uuid
    endpoints: tuple[Endpoint, ...]
    """Where peers reach it."""
    incarnation_id: Uuid
    end_offset: int | None = None
    """Leave out this offset and later ones; None: restore all."""


def restore(
    storage: Storage,
    manifest: Manifest,
    fs: FileSystem,
    data_dir: Path,
    restoration: Restoration,
    report: Callable[[Unpacked], Mapping[str, object]],
    clock: Clock,
    *,
    progress: Progress | None = None,
) -> tuple[Unpacked, Begun]:
    """Write the log into ``data_dir``, which must be empty, and begin an incarnation in it.

    Durability: everything is on disk when this returns.

    Raises:
        NotInBackupError: The backup does not reach the offset, or begins above it.
        BackupDamagedError: A file is missing or damaged.
        RecoveryRefusedError: No epoch is left.
        StorageError: The disk or the target failed.
    """
    partition = partition_directory(data_dir)
    found = unpack(
        storage,
        manifest,
        fs,
        partition,
        end_offset=restoration.end_offset,
        owner=restoration.directory_id,
        progress=progress,
    )
    newest = newest_epoch(manifest)
    ElectionFile(fs, partition, restoration.directory_id).save(ElectionState(newest))
    fs.sync_directory(data_dir)
    identity = MetaProperties(
        manifest.cluster_id, restoration.node_id, restoration.directory_id, found.incarnation.id
    )
    beginning = Beginning(
        restoration.incarnation_id,
        found.end.offset,
        newest,
        restoration.endpoints,
        report(found),
    )
    return found, begin(fs, data_dir, identity, beginning, clock)


def newest_epoch(manifest: Manifest) -> Epoch:
    """Return the newest epoch that the backup knows, of records that are left out too."""
    return max([manifest.start.epoch, manifest.end.epoch, *(e.epoch for e in manifest.epochs)])

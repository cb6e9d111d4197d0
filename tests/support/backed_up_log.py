"""A node's log that grows, and a backup of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from quorate.backup.create import create
from quorate.backup.manifest import Manifest
from quorate.backup.source import DirectorySource
from quorate.backup.storage import Storage
from quorum.types import SnapshotId
from tests.support.audit_log import AuditLog

CHUNK_BYTES = 1500


class World:
    """A log that grows, and its backup."""

    def __init__(self, log: AuditLog, storage: Storage) -> None:
        self.log = log
        self.storage = storage
        self.world = log.world(5, 0)

    def grow(self, steps: int = 20) -> int:
        self.log.more(self.world, steps)
        return self.log.commit()

    def back_up(self, source: Path | None = None) -> tuple[Manifest, int]:
        return backed_up(source or self.log.home, self.storage)


def backed_up(source: Path, storage: Storage) -> tuple[Manifest, int]:
    return asyncio.run(
        create(
            DirectorySource(source),
            storage,
            tool_version="test",
            created_ms=5,
            chunk_bytes=CHUNK_BYTES,
        )
    )


def trimmed(log: AuditLog) -> SnapshotId:
    """Write a checkpoint, and trim the log to it."""
    snapshot_id = log.checkpoint()
    log.log.advance_start(snapshot_id)
    return snapshot_id

"""A file system for server processes whose disk never completes the sync of a checkpoint.

A server selects it with ``node.filesystem``. Once a thread is blocked, a file appears in the folder
above the data directory. The log's files are synced as usual.
"""

from __future__ import annotations

import threading
from pathlib import Path

from quorum.log.filesystem import OsFile, OsFileSystem

NAME = "tests.integration.held_checkpoint:HeldCheckpointFileSystem"
HELD = "checkpoint-is-held"


class _File(OsFile):
    def sync(self) -> None:
        if self._path.name.endswith(".part"):
            # Partition, data directory, node.
            (self._path.parents[2] / HELD).touch()
            threading.Event().wait()
        super().sync()


class HeldCheckpointFileSystem(OsFileSystem):
    """``OsFileSystem`` that never completes a checkpoint."""

    def open(self, path: Path, *, create: bool = False, writable: bool = False) -> OsFile:
        plain = super().open(path, create=create, writable=writable)
        return _File(path, plain._fd)

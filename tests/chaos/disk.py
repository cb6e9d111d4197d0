"""The disk of a node under chaos: loses unsynced data, and fails on demand.

A fault is active while a file of its name is in the node's folder, above the data directory. The
first call that it affects writes a second file beside it, so a fault without effect is visible.
"""

from __future__ import annotations

import time
from pathlib import Path

from quorum.errors import DiskFullError, StorageError
from tests.support.volatile_filesystem import VolatileFile, VolatileFileSystem, _Node

NAME = "tests.chaos.disk:ChaosFileSystem"
FULL = "disk-is-full"
SYNC_FAILS = "disk-fails-to-sync"
HANGS = "disk-hangs"
LEVELS = 3
"""Levels above a file where the switch may be: partition, data directory, node."""
_POLL_SECONDS = 0.01
_MET = "-met"


def met_by(switch: Path) -> Path:
    """Return the path of the file that exists once this fault has affected a call."""
    return switch.with_name(switch.name + _MET)


class _File(VolatileFile):
    def _is_on(self, switch: str) -> bool:
        for folder in list(self._path.parents)[:LEVELS]:
            if (folder / switch).exists():
                met_by(folder / switch).touch()
                return True
        return False

    def append(self, data: bytes) -> int:
        self._check_room(len(data))
        return super().append(data)

    def write_at(self, position: int, data: bytes) -> None:
        self._check_room(len(data))
        super().write_at(position, data)

    def sync(self) -> None:
        while self._is_on(HANGS):
            time.sleep(_POLL_SECONDS)
        if self._is_on(SYNC_FAILS):
            raise StorageError("cannot sync: Input/output error", self._path)
        super().sync()

    def _check_room(self, count: int) -> None:
        if self._is_on(FULL):
            raise DiskFullError(f"cannot append {count} bytes: No space left", self._path)


class ChaosFileSystem(VolatileFileSystem):
    """``VolatileFileSystem`` with a full disk, syncs that fail, and syncs that hang."""

    def open(self, path: Path, *, create: bool = False, writable: bool = False) -> VolatileFile:
        plain = super().open(path, create=create, writable=writable)
        return _File(self, plain._open_node(), path)


class NoSyncChaosFileSystem(ChaosFileSystem):
    """A build with fsync disabled, to show that the checks notice."""

    def sync_node(self, node: _Node) -> None:
        """Claim success and do nothing."""

    def sync_directory(self, path: Path) -> None:
        """Claim success and do nothing."""

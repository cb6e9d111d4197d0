"""A file system for server processes whose writes and syncs hang while a file is there.

A server selects it with ``node.filesystem``; the test makes and removes the file in the folder
above the data directory. Reads still work, as from a cache.
"""

from __future__ import annotations

import time
from pathlib import Path

from quorum.log.filesystem import OsFile, OsFileSystem

NAME = "tests.integration.hanging_disk:HangingDiskFileSystem"
SWITCH = "disk-hangs"
LEVELS = 3
"""How far above a written file the switch may lie: partition, data directory, node."""
LOOK_SECONDS = 0.005


def _wait(switches: list[Path]) -> None:
    # What a hung device does to the thread that writes: nothing returns until it recovers.
    while any(switch.exists() for switch in switches):
        time.sleep(LOOK_SECONDS)


class _File(OsFile):
    __slots__ = ("_switches",)

    def append(self, data: bytes) -> int:
        _wait(self._switches)
        return super().append(data)

    def write_at(self, position: int, data: bytes) -> None:
        _wait(self._switches)
        super().write_at(position, data)

    def sync(self) -> None:
        _wait(self._switches)
        super().sync()


class HangingDiskFileSystem(OsFileSystem):
    """``OsFileSystem`` that hangs while the switch is there."""

    def open(self, path: Path, *, create: bool = False, writable: bool = False) -> OsFile:
        plain = super().open(path, create=create, writable=writable)
        file = _File(path, plain._fd)
        file._switches = [folder / SWITCH for folder in list(path.parents)[:LEVELS]]
        return file

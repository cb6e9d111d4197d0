"""A file system for server processes that is full while a file of a given name exists.

A server selects it with ``node.filesystem``; the test makes and removes the file in the folder
above the data directory.
"""

from __future__ import annotations

from pathlib import Path

from quorum.errors import DiskFullError
from quorum.log.filesystem import OsFile, OsFileSystem

NAME = "tests.integration.full_disk:FullDiskFileSystem"
SWITCH = "disk-is-full"
LEVELS = 3
"""How far above a written file the switch may lie: partition, data directory, node."""


class _File(OsFile):
    __slots__ = ("_switches", "_where")

    def append(self, data: bytes) -> int:
        self._check(len(data))
        return super().append(data)

    def write_at(self, position: int, data: bytes) -> None:
        self._check(len(data))
        super().write_at(position, data)

    def _check(self, count: int) -> None:
        if any(switch.exists() for switch in self._switches):
            raise DiskFullError(f"cannot append {count} bytes: No space left", self._where)


class FullDiskFileSystem(OsFileSystem):
    """``OsFileSystem`` that refuses to write while the switch is there."""

    def open(self, path: Path, *, create: bool = False, writable: bool = False) -> OsFile:
        plain = super().open(path, create=create, writable=writable)
        file = _File(path, plain._fd)
        file._switches = [folder / SWITCH for folder in list(path.parents)[:LEVELS]]
        file._where = path
        return file

"""A file system for server processes that is full for as long as a file of a given name exists.

A server selects it with ``node.filesystem``; the test makes and removes the file beside the
data directory.
"""

from __future__ import annotations

import os
from pathlib import Path

from quorum.errors import DiskFullError
from quorum.log.filesystem import OsFile, OsFileSystem

NAME = "tests.integration.full_disk:FullDiskFileSystem"
VARIABLE = "FULL_WHILE_EXISTS"
"""Environment variable with the path of the file that fills the disk."""


class _File(OsFile):
    __slots__ = ("_switch", "_where")

    def append(self, data: bytes) -> int:
        self._check(len(data))
        return super().append(data)

    def write_at(self, position: int, data: bytes) -> None:
        self._check(len(data))
        super().write_at(position, data)

    def _check(self, count: int) -> None:
        if self._switch.exists():
            raise DiskFullError(f"cannot append {count} bytes: No space left", self._where)


class FullDiskFileSystem(OsFileSystem):
    """``OsFileSystem`` that refuses to write while the switch is there."""

    def __init__(self) -> None:
        self._switch = Path(os.environ[VARIABLE])

    def open(self, path: Path, *, create: bool = False, writable: bool = False) -> OsFile:
        plain = super().open(path, create=create, writable=writable)
        file = _File(path, plain._fd)
        file._switch, file._where = self._switch, path
        return file

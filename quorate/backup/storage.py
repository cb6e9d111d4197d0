"""Where a backup is stored: a directory, or a URL (``object_store.py``).

Names are relative, with slashes. A file is written once and never changed, except that manifests of
an earlier run are removed. Nothing depends on a rename or on a write being atomic: a backup is
complete when its manifest, which names everything else with digests, can be read and is intact.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from quorate.backup.errors import BackupDamagedError
from quorate.backup.object_store import FsspecStorage
from quorum.log.directory_lock import DirectoryLock
from quorum.log.filesystem import OsFileSystem

_READ_BYTES = 1 << 20
_PART_SUFFIX = ".part"
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


class Storage(Protocol):
    """A folder of files."""

    def lock(self) -> AbstractContextManager[object]:
        """Return what keeps other backups out of this target, as far as it can be done."""

    def names(self, folder: str) -> list[str]:
        """Return the sorted names of the files in a folder; none if it does not exist."""

    def read(self, name: str) -> Iterator[bytes]:
        """Yield a file's content; raises ``BackupDamagedError`` if it is missing."""

    def write(self, name: str, content: Iterable[bytes]) -> None:
        """Write a file, durably and readable by its owner only where the storage has such modes."""

    def remove(self, name: str) -> None:
        """Remove a file; no effect if it does not exist."""


class DirectoryStorage:
    """A directory of this machine: directories have mode 0700, files 0600."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fs = OsFileSystem()

    def lock(self) -> AbstractContextManager[object]:
        """Lock the directory; made if missing."""
        self._fs.make_directory(self._path)
        return DirectoryLock(self._path)

    def names(self, folder: str) -> list[str]:
        """As ``Storage.names``."""
        found = self._fs.list_directory(self._path / folder)
        return [name for name in found if not name.endswith(_PART_SUFFIX)]

    def read(self, name: str) -> Iterator[bytes]:
        """As ``Storage.read``."""
        path = self._path / name
        if not self._fs.exists(path):
            raise BackupDamagedError(f"{path}: is missing")
        file = self._fs.open(path)
        try:
            position = 0
            while data := file.read_at(position, _READ_BYTES):
                yield data
                position += len(data)
        finally:
            file.close()

    def write(self, name: str, content: Iterable[bytes]) -> None:
        """As ``Storage.write``; the name exists with all content, or not at all."""
        path = self._path / name
        part = path.with_name(path.name + _PART_SUFFIX)
        self._fs.make_directory(path.parent)
        file = self._fs.open(part, create=True, writable=True)
        try:
            file.truncate(0)
            for data in content:
                file.append(data)
            file.sync()
        finally:
            file.close()
        self._fs.rename(part, path)
        self._fs.sync_directory(path.parent)

    def remove(self, name: str) -> None:
        """As ``Storage.remove``."""
        self._fs.unlink(self._path / name)


def storage_of(target: str) -> Storage:
    """Return the storage of a path, or of a URL that fsspec knows.

    Raises:
        BackupTargetError: fsspec or what it needs for this URL is not installed.
    """
    return FsspecStorage(target) if _URL.match(target) else DirectoryStorage(Path(target))

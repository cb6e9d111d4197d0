"""Lock of a data directory: one process at a time, enforced by the operating system.

The lock ends with its process, so a crash never leaves a directory locked. Only real directories
need it: a simulated disk has one owner by construction. Kafka's controllers lock the same file by
``lockf``, so neither program starts on a directory that the other one uses.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from quorum.errors import StorageError

LOCK_NAME = ".lock"


class DirectoryInUseError(StorageError):
    """Another process holds the lock of a directory."""


class DirectoryLock:
    """A lock on ``<directory>/.lock``, held from construction to ``release``.

    It is exclusive, or with ``is_shared`` keeps only those out that change the directory; then the
    file must exist, and nothing is written: the directory may be on a read-only disk.

    Raises:
        DirectoryInUseError: Another process holds it.
        StorageError: The directory cannot be written.
    """

    def __init__(self, directory: Path, *, is_shared: bool = False) -> None:
        path = directory / LOCK_NAME
        try:
            flags = os.O_RDONLY if is_shared else os.O_RDWR | os.O_CREAT
            self._fd = os.open(path, flags | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StorageError(f"cannot open the lock file: {error.strerror}", path) from error
        kind = fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX
        try:
            fcntl.flock(self._fd, kind | fcntl.LOCK_NB)
            # A Java process uses this kind of lock, which ignores the first one.
            fcntl.lockf(self._fd, kind | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._fd)
            self._fd = -1
            raise DirectoryInUseError(
                "the data directory is in use by another process", path
            ) from error

    def release(self) -> None:
        """Release the lock; calling it again does nothing."""
        descriptor, self._fd = self._fd, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

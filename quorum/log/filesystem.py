"""The real file system behind ``ports.FileSystem``: unbuffered POSIX files.

It contains the system calls and the translation of their errors. The modules above decide what is
written and in which order it becomes durable.

Data is synced with ``fdatasync``, which also writes the length a file has grown to; names are
synced by ``fsync`` of their directory. See: Pillai et al., "All File Systems Are Not Created
Equal" (OSDI 2014); Rebello et al., "Can Applications Recover from fsync Failures?" (ATC 2020).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from quorum.errors import DiskFullError, StorageError
from quorum.log.descriptor_reserve import DescriptorReserve

Result = TypeVar("Result")

_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
_FILE_MODE = 0o600
_DIRECTORY_MODE = 0o700
"""The log holds secrets (credentials, passwords in configurations): for its owner only."""
_fdatasync = getattr(os, "fdatasync", os.fsync)


def _translated(error: OSError, path: Path, action: str) -> StorageError:
    kind = DiskFullError if error.errno in _NO_SPACE else StorageError
    return kind(f"cannot {action}: {error.strerror or error}", path)


class OsFile:
    """One open file. ``read_at`` may be called from any thread, the rest from the writer."""

    __slots__ = ("_close", "_end", "_fd", "_path")

    def __init__(
        self, path: Path, descriptor: int, close: Callable[[int], None] = os.close
    ) -> None:
        self._path = path
        self._fd = descriptor
        self._close = close
        self._end = -1
        """Position of the next ``append``; -1 if the kernel must be asked."""

    def read_at(self, position: int, size: int) -> bytes:
        """Return up to ``size`` bytes from ``position``; fewer only at the end of the file.

        Raises:
            StorageError: The device failed, or the file is closed.
        """
        try:
            data = os.pread(self._fd, size, position)
            if len(data) == size or not data:
                return data
            parts = [data]
            missing = size - len(data)
            # For large sizes one call may return less than requested.
            while missing and (data := os.pread(self._fd, missing, position + size - missing)):
                parts.append(data)
                missing -= len(data)
        except OSError as error:
            raise _translated(error, self._path, f"read {size} bytes at {position}") from error
        return b"".join(parts)

    def append(self, data: bytes) -> int:
        """Write all of ``data`` at the end; a failure restores the former length.

        Returns:
            The position where ``data`` begins.

        Raises:
            DiskFullError: No space; the file has its former length.
            StorageError: Any other failure, also of restoring the length.
        """
        position = self._end if self._end >= 0 else self.size()
        try:
            written = os.pwrite(self._fd, data, position)
            if written < len(data):
                self._write_rest(position, data, written)
        except OSError as error:
            self.truncate(position)
            raise _translated(error, self._path, f"append {len(data)} bytes") from error
        self._end = position + len(data)
        return position

    def write_at(self, position: int, data: bytes) -> None:
        """Overwrite at ``position``.

        Raises:
            StorageError: A part may have been written.
        """
        self._end = -1
        try:
            written = os.pwrite(self._fd, data, position)
            if written < len(data):
                self._write_rest(position, data, written)
        except OSError as error:
            raise _translated(error, self._path, f"write at {position}") from error

    def _write_rest(self, position: int, data: bytes, written: int) -> None:
        view = memoryview(data)
        while written < len(data):
            written += os.pwrite(self._fd, view[written:], position + written)

    def truncate(self, size: int) -> None:
        """Cut the file to ``size`` bytes.

        Raises:
            StorageError: The length is unchanged.
        """
        self._end = -1
        try:
            os.ftruncate(self._fd, size)
        except OSError as error:
            raise _translated(error, self._path, f"truncate to {size} bytes") from error

    def sync(self) -> None:
        """Make content and length durable.

        Raises:
            StorageError: Never ``DiskFullError``: after a failed sync the kernel may have
                dropped the data, so it must not be retried.
        """
        try:
            _fdatasync(self._fd)
        except OSError as error:
            raise StorageError(f"cannot sync: {error.strerror or error}", self._path) from error

    def size(self) -> int:
        """Return the length in bytes.

        Raises:
            StorageError: The file is closed.
        """
        try:
            return os.fstat(self._fd).st_size
        except OSError as error:
            raise _translated(error, self._path, "read its size") from error

    def close(self) -> None:
        """Release the descriptor; calling it again does nothing."""
        descriptor, self._fd = self._fd, -1
        if descriptor < 0:
            return
        try:
            self._close(descriptor)
        except OSError as error:
            raise _translated(error, self._path, "close") from error


class OsFileSystem:
    """``ports.FileSystem`` on the operating system's files; share it freely.

    With a ``reserve`` files can still be opened when the process has no descriptor left.
    """

    def __init__(self, reserve: DescriptorReserve | None = None) -> None:
        self._reserve = reserve
        self._close = os.close if reserve is None else reserve.close

    def _opened(self, action: Callable[[], Result]) -> Result:
        return action() if self._reserve is None else self._reserve.run(action)

    def open(self, path: Path, *, create: bool = False, writable: bool = False) -> OsFile:
        """Open a file; a created one is writable and its name not yet durable.

        Raises:
            StorageError: Missing (without ``create``), not a file, or not permitted.
        """
        flags = os.O_CLOEXEC | (os.O_RDWR if writable or create else os.O_RDONLY)
        if create:
            flags |= os.O_CREAT
        try:
            descriptor = self._opened(lambda: os.open(path, flags, _FILE_MODE))
            return OsFile(path, descriptor, self._close)
        except OSError as error:
            raise _translated(error, path, "open") from error

    def exists(self, path: Path) -> bool:
        """Whether a file or directory of that name exists."""
        try:
            return path.exists()
        except OSError as error:
            raise _translated(error, path, "look up") from error

    def list_directory(self, path: Path) -> list[str]:
        """Return the sorted names in it; empty if it does not exist."""
        try:
            names = self._opened(lambda: sorted(entry.name for entry in path.iterdir()))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _translated(error, path, "list") from error
        if self._reserve is not None:
            self._reserve.refill()
        return names

    def make_directory(self, path: Path) -> None:
        """Create it with its parents, durably; no effect if it exists.

        A new directory is for its owner only; its new parents have the usual mode.
        """
        try:
            missing = [folder for folder in (path, *path.parents) if not folder.exists()]
            for folder in reversed(missing):
                folder.mkdir(_DIRECTORY_MODE if folder == path else 0o777, exist_ok=True)
                self.sync_directory(folder.parent)
            if not path.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        except OSError as error:
            raise _translated(error, path, "create directory") from error

    def rename(self, old: Path, new: Path) -> None:
        """Replace ``new`` atomically; durable after ``sync_directory`` of the folder."""
        try:
            old.replace(new)
        except OSError as error:
            raise _translated(error, old, f"rename to {new.name}") from error

    def unlink(self, path: Path) -> None:
        """Remove a file; no effect if it does not exist."""
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise _translated(error, path, "remove") from error

    def sync_directory(self, path: Path) -> None:
        """Make creations, renames and removals in it durable.

        Raises:
            StorageError: Their durability is unknown; the caller must stop.
        """
        try:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
            descriptor = self._opened(lambda: os.open(path, flags))
            try:
                os.fsync(descriptor)
            finally:
                self._close(descriptor)
        except OSError as error:
            raise StorageError(f"cannot sync: {error.strerror or error}", path) from error

    def free_bytes(self, path: Path) -> int | None:
        """Return the bytes free to this process; None if the system does not report them."""
        try:
            figures = os.statvfs(path)
        except OSError:
            return None
        return figures.f_bavail * figures.f_frsize

    def modified_ms(self, path: Path) -> int | None:
        """Return the file's modification time; None if the system does not report it."""
        try:
            return path.stat().st_mtime_ns // 1_000_000
        except OSError:
            return None

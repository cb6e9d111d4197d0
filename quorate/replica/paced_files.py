"""A file system for reading in the background: in small pieces, at a pace, until stopped.

Code that reads through it needs neither a pace nor a stop of its own: the code that
verifies files at a start also verifies them in the background.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from quorum.errors import QuorumUsageError
from quorum.ports import File, FileSystem

CHUNK_BYTES: Final = 64 << 10
"""Largest single read: a write that comes meanwhile waits for no more than this."""

_TIMER_SLACK_S: Final = 50e-6


class PacedStop(Exception):  # noqa: N818 - not an error: a caller wants the reading to end
    """A stop of the reading was requested."""


class Pace:
    """When the next bytes may be read: ``rate`` bytes a second on the average, nothing saved up.

    Args:
        rate: Bytes a second, at least 1.
        clock_s: A monotonic clock, in seconds.
    """

    def __init__(self, rate: int, clock_s: Callable[[], float]) -> None:
        self._rate = rate
        self._clock_s = clock_s
        self._free_at = 0.0

    def wait_s(self, size_bytes: int) -> float:
        """How long to wait before reading ``size_bytes``; the time they take is then used up."""
        now_s = self._clock_s()
        begin = max(self._free_at, now_s)
        self._free_at = begin + size_bytes / self._rate
        return begin - now_s


class PacedFiles:
    """Read-only ``FileSystem`` over another one. Used on one thread; ``stop`` from any.

    Args:
        fs: Where the files are.
        pace: None for as fast as the disk is, if a caller waits for the outcome.
    """

    def __init__(self, fs: FileSystem, pace: Pace | None = None) -> None:
        self._fs = fs
        self._pace = pace
        self._stopped = threading.Event()
        self.read_bytes = 0
        """Bytes read so far; any thread may look."""

    def stop(self) -> None:
        """Let the next read raise ``PacedStop``, and one that waits."""
        self._stopped.set()

    def pause(self, seconds: float) -> bool:
        """Wait; return whether a stop was requested."""
        # Every wait takes at least the slack of the system's timer.
        return self._stopped.wait(seconds if seconds > _TIMER_SLACK_S else 0)

    def read(self, file: File, position: int, size: int) -> bytes:
        """As ``File.read_at``, piece by piece. Raises: PacedStop: A stop was requested.
        StorageError: The disk failed.
        """
        chunks = []
        while size > 0:
            wanted = min(size, CHUNK_BYTES)
            if self.pause(0.0 if self._pace is None else self._pace.wait_s(wanted)):
                raise PacedStop
            chunk = file.read_at(position, wanted)
            chunks.append(chunk)
            self.read_bytes += len(chunk)
            position += len(chunk)
            size -= len(chunk)
            if len(chunk) < wanted:
                break
        return b"".join(chunks)

    def open(self, path: Path, *, create: bool = False, writable: bool = False) -> File:
        """Open for reading."""
        if create or writable:
            raise QuorumUsageError("opened for reading only")
        return _PacedFile(self._fs.open(path), self)

    def exists(self, path: Path) -> bool:
        """As the underlying file system does."""
        return self._fs.exists(path)

    def list_directory(self, path: Path) -> list[str]:
        """As the underlying file system does."""
        return self._fs.list_directory(path)

    def make_directory(self, path: Path) -> None:
        """Never."""
        raise QuorumUsageError(f"{path}: opened for reading only")

    def rename(self, old: Path, new: Path) -> None:
        """Never."""
        raise QuorumUsageError(f"{old} to {new}: opened for reading only")

    def unlink(self, path: Path) -> None:
        """Never."""
        raise QuorumUsageError(f"{path}: opened for reading only")

    def sync_directory(self, path: Path) -> None:
        """Never."""
        raise QuorumUsageError(f"{path}: opened for reading only")

    def free_bytes(self, path: Path) -> int | None:
        """As the underlying file system does."""
        return self._fs.free_bytes(path)

    def modified_ms(self, path: Path) -> int | None:
        """As the underlying file system does."""
        return self._fs.modified_ms(path)


class _PacedFile:
    """A file of ``PacedFiles``."""

    def __init__(self, file: File, files: PacedFiles) -> None:
        self._file = file
        self._files = files

    def read_at(self, position: int, size: int) -> bytes:
        return self._files.read(self._file, position, size)

    def size(self) -> int:
        return self._file.size()

    def close(self) -> None:
        self._file.close()

    def append(self, data: bytes) -> int:
        raise QuorumUsageError(f"{len(data)} bytes: opened for reading only")

    def write_at(self, position: int, data: bytes) -> None:
        raise QuorumUsageError(f"{len(data)} bytes at {position}: opened for reading only")

    def truncate(self, size: int) -> None:
        raise QuorumUsageError(f"to {size} bytes: opened for reading only")

    def sync(self) -> None:
        raise QuorumUsageError("opened for reading only")

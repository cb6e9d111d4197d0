"""Tells when a file was replaced, such as a renewed key or a list of revoked certificates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

LOOKED_AT_S: Final = 1.0
"""How often a file is looked at."""
FileSignature: TypeAlias = tuple[int, int, int] | None


def file_signature(path: Path) -> FileSignature:
    """Return a value that changes when the file does; None if it is missing."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


class WatchedFile:
    """Looks at a file at most once in ``LOOKED_AT_S``; ``now_s`` is a monotonic clock in seconds.

    Not safe for use by several threads.
    """

    def __init__(self, path: Path, now_s: Callable[[], float]) -> None:
        self._path = path
        self._now_s = now_s
        self._seen = file_signature(path)
        self._looked_at = now_s()

    def has_changed(self) -> bool:
        """Whether the file has changed since this was last true, or since the start.

        A caller that finds the new content unusable gets no second notice.
        """
        now = self._now_s()
        if now - self._looked_at < LOOKED_AT_S:
            return False
        self._looked_at = now
        seen = file_signature(self._path)
        if seen == self._seen:
            return False
        self._seen = seen
        return True

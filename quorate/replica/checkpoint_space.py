"""Room for a checkpoint: whether the disk has it, and when to ask again after it had not.

A checkpoint that does not fit costs more than itself. While it is written it takes what the log
needs next, and a log that finds no space stops the node; so the space is looked at beforehand,
and what failed waits before it is tried again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from quorum.ports import FileSystem

LOG_RESERVE_BYTES = 16 << 20
"""Left free beside a checkpoint, for what the log writes in the meantime."""
RETRY_MIN_MS = 1_000
RETRY_MAX_MS = 60_000
"""The pause after a failure doubles from the one to the other."""


class CheckpointSpace:
    """The room on one node's disk. Owned by the driver's thread."""

    def __init__(self, fs: FileSystem, directory: Path, now_ms: Callable[[], int]) -> None:
        self._fs = fs
        self._directory = directory
        self._now_ms = now_ms
        self._retry_at_ms = 0
        self.failures = 0
        """Checkpoints in a row that found no space."""

    @property
    def is_waiting(self) -> bool:
        """Whether the pause after a failure is not over."""
        return bool(self.failures) and self._now_ms() < self._retry_at_ms

    def shortage(self, checkpoint_bytes: int) -> str:
        """Why a checkpoint of about this size would not fit; empty when it would, or when the
        file system does not tell.
        """
        free = self._fs.free_bytes(self._directory)
        wanted = checkpoint_bytes + LOG_RESERVE_BYTES
        if free is None or free >= wanted:
            return ""
        return f"{self._directory}: {free} bytes free, {wanted} wanted"

    def failed(self) -> int:
        """One found no space; returns after how many milliseconds the next may be tried."""
        pause_ms = min(RETRY_MAX_MS, RETRY_MIN_MS << min(self.failures, 16))
        self.failures += 1
        self._retry_at_ms = self._now_ms() + pause_ms
        return pause_ms

    def succeeded(self) -> None:
        """One was written."""
        self.failures = 0

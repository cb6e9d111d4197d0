"""Disk space for a checkpoint: whether there is enough, and when to try again if not.

A checkpoint that does not fit costs more than itself. While it is written it takes what the log
needs next, and a log that finds no space stops the node; so the log keeps a reserve, and what
failed waits before it is tried again.

The size of the next one is not known in advance. The log written since is no measure of it: one key
changed again and again makes a long log and a small checkpoint, and to refuse that one is to
leave the log untrimmed until the disk is full. So one is begun where another of the newest's size
would fit, and given up once it grows into the reserve.

On a disk that is nearly full the reserve alone would keep a small checkpoint from being written,
and with it the log from ever giving back what the checkpoint stands for. So of the last 32 MiB a
checkpoint may take up to half, but only where whole segments of more bytes than the newest
checkpoint may go after it that might not have gone before. When they go is up to the replicas that
have yet to fetch them; until then no other checkpoint is paid for with the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from quorum.ports import FileSystem

LOG_RESERVE_BYTES = 16 << 20
"""Left free beside a checkpoint, begun or finished, for what the log writes in the meantime."""
RETRY_MIN_MS = 1_000
RETRY_MAX_MS = 60_000
"""The pause after a failure doubles from the one to the other."""


class CheckpointSpace:
    """The free space of one node's disk. Owned by the driver's thread."""

    def __init__(self, fs: FileSystem, directory: Path, now_ms: Callable[[], int]) -> None:
        self._fs = fs
        self._directory = directory
        self._now_ms = now_ms
        self._retry_at_ms = 0
        self.failures = 0
        """Checkpoints in a row that found no space."""

    @property
    def is_waiting(self) -> bool:
        """Whether the pause after a failure still lasts."""
        return bool(self.failures) and self._now_ms() < self._retry_at_ms

    def reserve_bytes(self, newest_bytes: int, trimmed_bytes: int) -> int:
        """Return the bytes that the next checkpoint must leave free.

        Args:
            newest_bytes: Size of the newest one there is.
            trimmed_bytes: How much more of the log could go once it is written: whole segments
                that end above the newest one.
        """
        free = self._fs.free_bytes(self._directory)
        if free is None or trimmed_bytes <= newest_bytes:
            return LOG_RESERVE_BYTES
        return min(LOG_RESERVE_BYTES, free // 2)

    def shortage(self, newest_bytes: int, reserve_bytes: int) -> str:
        """Return why none may begin if the newest has this size; empty when one may, or when the
        file system does not tell what is free.
        """
        free = self._fs.free_bytes(self._directory)
        wanted = newest_bytes + reserve_bytes
        if free is None or free >= wanted:
            return ""
        return f"{self._directory}: {free} bytes free, {wanted} wanted"

    def failed(self) -> int:
        """Note that one found no space; return the milliseconds until the next try."""
        pause_ms = min(RETRY_MAX_MS, RETRY_MIN_MS << min(self.failures, 16))
        self.failures += 1
        self._retry_at_ms = self._now_ms() + pause_ms
        return pause_ms

    def succeeded(self) -> None:
        """Note that one was written."""
        self.failures = 0

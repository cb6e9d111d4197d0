"""Whether a node comes when it meant to: how a process pause of its process shows.

Whatever enters the node next, a timer or a message, finds the deadline that the core last asked
for long over. The core is told before anything else (``quorum.core.liveness.process_pause``).
"""

from __future__ import annotations


class PauseDetector:
    """The deadline last asked for, held against the time of the next entry."""

    __slots__ = ("_limit_ms", "due_ms")

    def __init__(self, limit_ms: int) -> None:
        """``limit_ms`` 0: nothing is ever late."""
        self._limit_ms = limit_ms
        self.due_ms: int | None = None

    def late_by(self, now_ms: int) -> int:
        """Milliseconds beyond the deadline, once, if that is more than the limit; else 0."""
        due_ms = self.due_ms
        if due_ms is None or now_ms <= due_ms + self._limit_ms or not self._limit_ms:
            return 0
        self.due_ms = None
        return now_ms - due_ms

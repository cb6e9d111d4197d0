"""Detects a hung disk without a thread or a clock: since when no write has completed.

Writes are executed in order, so progress on any ticket is progress. The watch measures how long
there was none while a write was outstanding, which is the length of one pass of the writer: its
appends and its sync.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from quorum.core.state.held_fetches import NEVER_MS

_SECOND_LOOK_DIVISOR = 8


@dataclass(slots=True)
class DiskWatch:
    """Plain state; ``disk_stall`` acts on it. Times are monotonic milliseconds."""

    limit_ms: int
    since_ms: int = 0
    """When the disk last completed something, or was given something after being idle."""
    check_due_ms: int = NEVER_MS
    is_suspected: bool = False
    is_stalled: bool = False
    _second_look_ms: int = field(init=False)

    def __post_init__(self) -> None:
        self._second_look_ms = max(1, self.limit_ms // _SECOND_LOOK_DIVISOR)

    def begin(self, now_ms: int) -> None:
        """An idle disk was given something to do, or a busy one has more to do after progress."""
        self.since_ms = now_ms
        self.is_suspected = False
        self.check_due_ms = now_ms + self.limit_ms - self._second_look_ms

    def end(self) -> None:
        """Nothing is outstanding."""
        self.check_due_ms = NEVER_MS

    def check(self, now_ms: int) -> bool:
        """Whether the disk has hung, from now on; looks twice.

        A process that was stopped finds its deadline over and the completion still unread. It
        reads that before it looks again.
        """
        if now_ms < self.check_due_ms or self.is_stalled:
            return False
        if not self.is_suspected:
            self.is_suspected = True
            self.check_due_ms = now_ms + self._second_look_ms
            return False
        self.is_stalled = True
        self.check_due_ms = NEVER_MS
        return True

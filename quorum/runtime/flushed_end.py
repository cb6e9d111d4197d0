"""How much of the log is on this replica's own disk, by the tickets of its appends."""

from __future__ import annotations

from collections import deque


class FlushedEnd:
    """Ends of appends under way, in order, and the end that is durable."""

    def __init__(self) -> None:
        self._appends: deque[tuple[int, int]] = deque()
        self.offset = 0
        """Everything below is durable."""

    def appended(self, ticket: int, end_offset: int) -> None:
        """The log ends at ``end_offset`` once ``ticket`` is durable."""
        self._appends.append((ticket, end_offset))

    def durable(self, ticket: int) -> bool:
        """Everything up to ``ticket`` is on disk; whether an append was among it."""
        appends = self._appends
        has_moved = False
        while appends and appends[0][0] <= ticket:
            self.offset = appends.popleft()[1]
            has_moved = True
        return has_moved

    def truncated(self, end_offset: int) -> None:
        """The log was cut: nothing above ``end_offset`` will become durable."""
        self._appends = deque((ticket, min(end, end_offset)) for ticket, end in self._appends)
        self.offset = min(self.offset, end_offset)

    def replaced(self, end_offset: int) -> None:
        """The log begins and ends at ``end_offset``, as found or as a checkpoint made it."""
        self._appends.clear()
        self.offset = end_offset

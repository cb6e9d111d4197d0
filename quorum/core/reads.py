"""Read rounds: the proof that a leader still led after a read arrived.

A leader stamps the number of its current round on every answer; voters echo the latest they
have seen in their next Fetch or FetchSnapshot. A majority of echoes of round *r* means that a
majority had not left the epoch after *r* began, so no later leader can have committed
anything before it. An echo is counted like an acknowledged offset.

Reads that arrive while a round is under way wait for the next one: their round must begin
after them.

See: Raft dissertation section 6.4; architecture 5.3.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorum.core.messages import ReadRound
from quorum.types import Epoch


@dataclass(slots=True)
class PendingRead:
    """A read that waits for its round, and the offset it may be answered at."""

    token: int
    read_offset: int


class ReadRounds:
    """The rounds of one leader in one epoch. Bounded by the caller through ``len``.

    Invariants:
        1. A read is confirmed only by a round that began when or after it was added.
        2. At most one round is under way; ``stamp`` names the latest one begun.
    """

    __slots__ = ("_current", "_epoch", "_next", "stamp")

    def __init__(self, epoch: Epoch) -> None:
        self._epoch = epoch
        self._current: list[PendingRead] = []
        self._next: list[PendingRead] = []
        self.stamp = ReadRound(epoch, 0)

    def __len__(self) -> int:
        return len(self._current) + len(self._next)

    @property
    def is_under_way(self) -> bool:
        """Whether some read waits for echoes of ``stamp``."""
        return bool(self._current)

    def add(self, token: int, read_offset: int) -> bool:
        """Let a read wait; whether a new round began with it (and has to be announced)."""
        self._next.append(PendingRead(token, read_offset))
        if self._current:
            return False
        self._begin()
        return True

    def confirm(self, number: int) -> list[PendingRead]:
        """A majority has echoed ``number``: the reads that confirms, in order of arrival.

        When others were waiting, the next round begins; ``stamp`` tells.
        """
        if number < self.stamp.number or not self._current:
            return []
        confirmed = self._current
        self._current = []
        if self._next:
            self._begin()
        return confirmed

    def take_all(self) -> list[PendingRead]:
        """Every waiting read, for a leader that is one no longer."""
        taken = self._current + self._next
        self._current, self._next = [], []
        return taken

    def _begin(self) -> None:
        self.stamp = ReadRound(self._epoch, self.stamp.number + 1)
        self._current, self._next = self._next, []

"""Read rounds: the proof that a leader still led after a read arrived.

A leader puts the number of its current round into every response; voters echo the latest number
in their next Fetch or FetchSnapshot. A majority of echoes of round *r* means that a
majority had not left the epoch after *r* began, so no later leader can have committed
anything before it. An echo is counted like an acknowledged offset.

Reads that arrive during a round wait for the next one, because their round must begin after them.
Without waiting reads the rounds continue with the Fetches that come anyway, and cause no message.
They show when a majority last followed the leader (``as_of_ms``).

See: Raft dissertation section 6.4; ADR 9.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorum.core.messages.read_messages import ReadRound
from quorum.types import Epoch, NodeId


@dataclass(frozen=True, slots=True)
class Asker:
    """A replica that asked for a read position, and by which request."""

    sender: NodeId
    request_id: int


@dataclass(frozen=True, slots=True)
class PendingRead:
    """A read that waits for its round, and the offset it may be answered at.

    ``token`` names a read of this node; with ``asker`` it is another replica's and 0.
    """

    token: int
    read_offset: int
    asker: Asker | None = None


class ReadRounds:
    """The rounds of one leader in one epoch. Bounded by the caller through ``len``.

    Invariants:
        1. A read is confirmed only by a round that began when or after it was added.
        2. At most one round that reads wait for is under way; ``stamp`` names the latest begun.
        3. A replica has at most one request in a round: a repeated one takes its place.
    """

    __slots__ = ("_begun_ms", "_epoch", "_next", "as_of_ms", "current", "stamp")

    def __init__(self, epoch: Epoch, now_ms: int) -> None:
        self._epoch = epoch
        self.current: list[PendingRead] = []
        """The reads that wait for echoes of ``stamp``. Read-only."""
        self._next: list[PendingRead] = []
        self._begun_ms = now_ms
        self.stamp = ReadRound(epoch, 1)
        self.as_of_ms = -1
        """When the newest confirmed round began: a majority followed this leader then. -1 before
        the first."""

    def __len__(self) -> int:
        return len(self.current) + len(self._next)

    def add(self, read: PendingRead, now_ms: int) -> bool:
        """Let a read wait; whether a new round began with it (and has to be announced)."""
        if read.asker is not None:
            self._next = [
                each
                for each in self._next
                if each.asker is None or each.asker.sender != read.asker.sender
            ]
        self._next.append(read)
        if self.current:
            return False
        self._begin(now_ms)
        return True

    def confirm(self, number: int, now_ms: int) -> list[PendingRead]:
        """A majority has echoed ``number``: the reads that confirms, in order of arrival.

        The next round begins; ``stamp`` names it.
        """
        if number < self.stamp.number:
            return []
        self.as_of_ms = self._begun_ms
        confirmed = self.current
        self._begin(now_ms)
        return confirmed

    def take_all(self) -> list[PendingRead]:
        """Every waiting read, for a leader that is one no longer."""
        taken = self.current + self._next
        self.current, self._next = [], []
        return taken

    def _begin(self, now_ms: int) -> None:
        self.stamp = ReadRound(self._epoch, self.stamp.number + 1)
        self._begun_ms = now_ms
        self.current, self._next = self._next, []

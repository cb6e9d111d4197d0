"""Reads that wait on a replica for a position from the leader.

A container, like ``held_fetches``: it knows which reads a request speaks for;
``read_forwarding`` decides when to ask. Every read put in comes out exactly once.
"""

from __future__ import annotations

from collections import deque

from quorum.core.state.held_fetches import NEVER_MS
from quorum.types import NodeId
from quorum.values import value


@value
class ForwardedRead:
    """One read of this node, and until when it may wait."""

    token: int
    deadline_ms: int


@value
class AskedPosition:
    """The request under way, for the first ``count`` of the reads."""

    request_id: int
    peer: NodeId
    deadline_ms: int
    count: int


class WaitingReads:
    """Reads in order of arrival; bounded by the caller through ``len``.

    Invariants:
        1. Deadlines ascend.
        2. ``asked`` speaks only for reads that were here when it was asked.
    """

    __slots__ = ("ask_at_ms", "asked", "failures", "reads")

    def __init__(self) -> None:
        self.reads: deque[ForwardedRead] = deque()
        """To be looked at: whether any read waits is asked after every message."""
        self.asked: AskedPosition | None = None
        self.ask_at_ms = 0
        """No request leaves before this: the pause after one that failed."""
        self.failures = 0
        """Requests that failed in a row."""

    def __len__(self) -> int:
        return len(self.reads)

    @property
    def has_unasked(self) -> bool:
        """Whether some read is not spoken for."""
        return len(self.reads) > (self.asked.count if self.asked is not None else 0)

    @property
    def earliest_deadline_ms(self) -> int:
        """When the first read has waited too long."""
        return self.reads[0].deadline_ms if self.reads else NEVER_MS

    def add(self, read: ForwardedRead) -> None:
        """Let a read wait for the next request."""
        self.reads.append(read)

    def ask(self, request_id: int, peer: NodeId, deadline_ms: int) -> None:
        """A request leaves for everything that waits."""
        self.asked = AskedPosition(request_id, peer, deadline_ms, len(self.reads))

    def answered(self) -> list[ForwardedRead]:
        """What the request under way spoke for, in order of arrival."""
        count = self.asked.count if self.asked is not None else 0
        self.asked = None
        self.failures = 0
        self.ask_at_ms = 0
        return [self.reads.popleft() for _ in range(count)]

    def failed(self, ask_at_ms: int) -> None:
        """The request under way was in vain: its reads wait for another."""
        self.asked = None
        self.failures += 1
        self.ask_at_ms = ask_at_ms

    def recall(self) -> None:
        """Whom to ask has changed: forget the request, and ask as soon as possible."""
        self.asked = None
        self.failures = 0
        self.ask_at_ms = 0

    def take_expired(self, now_ms: int) -> list[ForwardedRead]:
        """Those that have waited too long, also of a request under way."""
        expired: list[ForwardedRead] = []
        reads = self.reads
        while reads and reads[0].deadline_ms <= now_ms:
            expired.append(reads.popleft())
        if expired and self.asked is not None:
            count = max(0, self.asked.count - len(expired))
            asked = self.asked
            self.asked = (
                AskedPosition(asked.request_id, asked.peer, asked.deadline_ms, count)
                if count
                else None
            )
        return expired

    def take_all(self) -> list[ForwardedRead]:
        """Everything, for a node that need not ask any more."""
        taken = list(self.reads)
        self.reads.clear()
        self.recall()
        return taken

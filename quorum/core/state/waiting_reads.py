"""Reads that wait on a replica for a position from the leader.

A container, like ``held_fetches``: it knows which reads a request is for;
``read_forwarding`` decides when to ask. Every read put in comes out exactly once.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.peer_requests import PeerRequest, Purpose
from quorum.types import NO_NODE, NodeId


@dataclass(frozen=True, slots=True)
class ForwardedRead:
    """One read of this node, and until when it may wait."""

    token: int
    deadline_ms: int


class WaitingReads:
    """Reads in order of arrival; bounded by the caller through ``len``.

    Invariants:
        1. Deadlines ascend.
        2. ``asked`` counts only reads that were here when ``request`` was sent.
    """

    __slots__ = ("asked", "reads", "request")

    def __init__(self) -> None:
        self.reads: deque[ForwardedRead] = deque()
        """Read-only. Not behind a method: it is checked after every message."""
        self.request = PeerRequest(NO_NODE, Purpose.READ_POSITION)
        """Asks the leader for a position, for the first ``asked`` reads."""
        self.asked = 0

    def __len__(self) -> int:
        return len(self.reads)

    @property
    def earliest_deadline_ms(self) -> int:
        """When the first read has waited too long."""
        return self.reads[0].deadline_ms if self.reads else NEVER_MS

    def add(self, read: ForwardedRead) -> None:
        """Let a read wait for the next request."""
        self.reads.append(read)

    def ask(self, peer: NodeId) -> None:
        """A request to ``peer`` leaves for everything that waits."""
        self.request.peer, self.asked = peer, len(self.reads)

    def answered(self) -> list[ForwardedRead]:
        """The reads that the request was for, in order of arrival."""
        taken = [self.reads.popleft() for _ in range(self.asked)]
        self.recall()
        return taken

    def recall(self) -> None:
        """Ask anew as soon as a read waits: the peer has answered or was replaced."""
        self.asked = self.request.failures = self.request.due_ms = 0

    def take_expired(self, now_ms: int) -> list[ForwardedRead]:
        """Those that have waited too long, also of a request under way."""
        expired: list[ForwardedRead] = []
        while self.reads and self.reads[0].deadline_ms <= now_ms:
            expired.append(self.reads.popleft())
        self.asked = max(0, self.asked - len(expired))
        return expired

    def take_all(self) -> list[ForwardedRead]:
        """Everything, for a node that need not ask any more."""
        taken = list(self.reads)
        self.reads.clear()
        self.recall()
        return taken

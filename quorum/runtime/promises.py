"""Messages that wait for the disk: each leaves once its ticket was reported durable.

In the order in which the core gave them out, and never before. See: ADR 7.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from quorum.core.contract.output import Promise


class Promises:
    """The queue between the core's decision and the network."""

    def __init__(self, leave: Callable[[Promise], None]) -> None:
        self._leave = leave
        self._waiting: deque[Promise] = deque()
        self._durable_ticket = 0

    def add(self, promise: Promise) -> None:
        """Let it leave with the next ``release`` that its ticket allows."""
        self._waiting.append(promise)

    def durable(self, ticket: int) -> None:
        """Everything up to ``ticket`` is on disk."""
        self._durable_ticket = ticket
        self.release()

    def release(self) -> None:
        """Let go of what waits for nothing any more."""
        waiting = self._waiting
        while waiting and waiting[0].ticket <= self._durable_ticket:
            self._leave(waiting.popleft())

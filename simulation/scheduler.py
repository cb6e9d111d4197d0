"""Virtual time: a queue of calls ordered by time, then by creation."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any


class Scheduler:
    """Owns the only clock of a run, in microseconds from 0."""

    def __init__(self) -> None:
        self.now_us = 0
        self._heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = 0

    def after(self, delay_us: int, call: Callable[..., None], *arguments: Any) -> None:
        """Call ``delay_us`` from now."""
        # A copy of ``at`` for speed: every event goes through here.
        self._count = count = self._count + 1
        at_us = self.now_us + delay_us if delay_us > 0 else self.now_us
        heapq.heappush(self._heap, (at_us, count, call, arguments))

    def at(self, time_us: int, call: Callable[..., None], *arguments: Any) -> None:
        """Call at ``time_us``, or now if that is past."""
        self._count += 1
        heapq.heappush(self._heap, (max(time_us, self.now_us), self._count, call, arguments))

    def step(self) -> None:
        """Advance to the next call and make it.

        Raises:
            IndexError: The queue is empty, which no run should reach.
        """
        self.now_us, _, call, arguments = heapq.heappop(self._heap)
        call(*arguments)

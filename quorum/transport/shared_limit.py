"""Futures with the same time limit, which share one timer.

A timer, a task and a timeout for each of thousands of short waits cost more than what is waited
for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


class SharedLimit:
    """Makes futures that fail after ``seconds``. Owned by the event loop."""

    def __init__(self, seconds: float, failure: Callable[[], Exception]) -> None:
        """``failure`` returns the exception of a future that was not done in time."""
        self.seconds = seconds
        self._failure = failure
        self._limits: dict[asyncio.Future[Any], float] = {}
        """The earliest first, since every limit is as far away as the others when it begins."""
        self._timer: asyncio.TimerHandle | None = None

    def future(self) -> asyncio.Future[Any]:
        """Return a future; ``forget`` it when it is not waited for any more."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        limit = loop.time() + self.seconds
        self._limits[future] = limit
        if self._timer is None:
            self._timer = loop.call_at(limit, self._end_late)
        return future

    def forget(self, future: asyncio.Future[Any]) -> None:
        """Drop the limit of a future, done or not."""
        self._limits.pop(future, None)

    def _end_late(self) -> None:
        self._timer = None
        loop = asyncio.get_running_loop()
        while self._limits:
            future, limit = next(iter(self._limits.items()))
            if limit > loop.time():
                self._timer = loop.call_at(limit, self._end_late)
                return
            del self._limits[future]
            if not future.done():
                future.set_exception(self._failure())

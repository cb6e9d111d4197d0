"""Requests to one peer that have no answer yet, each with its deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from quorum.core.messages.message_types import Request
from quorum.transport.limits import OPEN_REQUESTS_MAX


class OpenRequests:
    """Unanswered requests, in the order of sending. Owned by the event loop.

    All requests have the same timeout, so the oldest always expires first and one timer is enough:
    a usual turn creates or cancels no timer.
    """

    def __init__(self, timeout_s: float, on_expired: Callable[[int, float], None]) -> None:
        self._timeout_s = timeout_s
        self._on_expired = on_expired
        self._open: dict[int, tuple[float, type[Request]]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[int]:
        return iter(self._open)

    def __contains__(self, request_id: int) -> bool:
        return request_id in self._open

    def add(self, request: Request, now: float) -> int | None:
        """Add a request that is about to leave.

        Returns:
            The id of the oldest one, if it was evicted because there were too many; else None.
        """
        evicted = None
        # A repeated id gets a new deadline, at the end of the order.
        self._open.pop(request.request_id, None)
        if len(self._open) >= OPEN_REQUESTS_MAX:
            evicted = next(iter(self._open))
            del self._open[evicted]
        self._open[request.request_id] = (now, type(request))
        if self._timer is None:
            self._arm(now + self._timeout_s)
        return evicted

    def take(self, request_id: int) -> type[Request] | None:
        """Remove an answered request and return its type; None if it is not open."""
        entry = self._open.pop(request_id, None)
        return entry[1] if entry is not None else None

    def take_all(self) -> list[int]:
        """Remove all requests and return their ids, oldest first."""
        ids = list(self._open)
        self._open.clear()
        return ids

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, when: float) -> None:
        self._timer = asyncio.get_running_loop().call_at(when, self._expire)

    def _expire(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        while self._open:
            request_id = next(iter(self._open))
            asked_at = self._open[request_id][0]
            if asked_at + self._timeout_s > now:
                if self._timer is None:
                    self._arm(asked_at + self._timeout_s)
                return
            del self._open[request_id]
            self._on_expired(request_id, asked_at)

"""Read the request of a call within a time limit, and a limited number of requests at once.

gRPC allocates a whole message when a handler reads it, and then waits for the rest without limit. A
caller that announces messages and stalls could make a node allocate all of them. Therefore our
handlers read their request themselves, after admission: until then gRPC buffers no more than a
stream's first window (``SERVER_OPTIONS``).

Invariant: at most ``READS_MAX`` messages are being received at a time, each for at most
``seconds``; a caller waits for a place no longer than that either.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Final

from quorum.fair_share import FairShare
from quorum.transport.eager import run_into
from quorum.transport.shared_limit import SharedLimit

READS_MAX: Final = 32
"""Requests being received at a time, by all callers. A request that has arrived needs its place
for one turn of the loop at most."""
MESSAGE_SECONDS_MAX: Final = 5.0
"""Default time limit for a request to arrive, and to wait for its place."""


class MessageLateError(Exception):
    """The request did not arrive in time."""


class MessageReads:
    """Places for requests that are being received. Owned by the event loop."""

    def __init__(self, name: str, seconds: float = MESSAGE_SECONDS_MAX) -> None:
        self.places = FairShare(name, READS_MAX)
        """``refused`` counts every request that did not arrive in time."""
        self.seconds = seconds
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._limit = SharedLimit(seconds, self._late)

    async def read(self, context: Any, caller: str) -> Any:
        """Return the first message of a call, or gRPC's end of stream.

        Raises:
            MessageLateError: It did not arrive within ``seconds``. Answer with a status, which
                ends the read.
        """
        if self.places.has_room(caller):
            self.places.take(caller)
        else:
            await self._wait_for_place(caller)
        message = self._limit.future()
        try:
            # gRPC's read is never cancelled: that leaks the operation. It ends with the call.
            run_into(context.read(), message)
            return await message
        finally:
            self._limit.forget(message)
            self.places.release(caller)
            if self._waiting:
                self._wake()

    async def _wait_for_place(self, caller: str) -> None:
        turn: asyncio.Future[None] = self._limit.future()
        line = self._waiting.setdefault(caller, deque())
        line.append(turn)
        try:
            await turn
        except BaseException:
            if turn in line:
                line.remove(turn)
                self._forget(caller, line)
            elif not turn.cancelled() and turn.exception() is None:
                # The place was assigned to this call already: pass it on to a waiting one.
                self.places.release(caller)
                self._wake()
            raise
        finally:
            self._limit.forget(turn)

    def _wake(self) -> None:
        """Assign free places to waiting callers, one to each in turn."""
        for caller, line in list(self._waiting.items()):
            while line and line[0].done():
                # Cancelled or late; its call has not had its turn of the loop yet.
                line.popleft()
            if line and self.places.has_room(caller):
                # Taken here, so that no other call can take the place first.
                self.places.take(caller)
                line.popleft().set_result(None)
            self._forget(caller, line)

    def _forget(self, caller: str, line: deque[asyncio.Future[None]]) -> None:
        if not line and self._waiting.get(caller) is line:
            del self._waiting[caller]

    def _late(self) -> MessageLateError:
        self.places.refused += 1
        return MessageLateError()

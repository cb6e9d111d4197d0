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
from quorum.transport.link import forget_failure

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

    async def read(self, context: Any, caller: str) -> Any:
        """Return the first message of a call, or gRPC's end of stream.

        Raises:
            MessageLateError: It did not arrive within ``seconds``. Answer with a status, which
                ends the read.
        """
        await self._take(caller)
        try:
            # Waited for, not cancelled: that leaks the operation. It ends with the call.
            read = asyncio.ensure_future(context.read())
            read.add_done_callback(forget_failure)
            await asyncio.wait({read}, timeout=self.seconds)
            if not read.done():
                self.places.refused += 1
                raise MessageLateError
            return read.result()
        finally:
            self.places.release(caller)
            self._wake()

    async def _take(self, caller: str) -> None:
        if self.places.has_room(caller):
            self.places.take(caller)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line = self._waiting.setdefault(caller, deque())
        line.append(turn)
        try:
            await asyncio.wait({turn}, timeout=self.seconds)
        except asyncio.CancelledError:
            if turn.done():
                # The place was assigned to this call already: pass it on to a waiting one.
                self.places.release(caller)
                self._wake()
            raise
        finally:
            turn.cancel()
            if turn.cancelled() and turn in line:
                line.remove(turn)
            if not line and self._waiting.get(caller) is line:
                del self._waiting[caller]
        if turn.cancelled():
            self.places.refused += 1
            raise MessageLateError

    def _wake(self) -> None:
        """Assign free places to waiting callers, one to each in turn."""
        for caller in list(self._waiting):
            line = self._waiting[caller]
            if line and self.places.has_room(caller):
                # Taken here, so that no other call can take the place first.
                self.places.take(caller)
                line.popleft().set_result(None)

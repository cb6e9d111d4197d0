"""Reading the request of a call: in bounded time, and of so many calls at once.

gRPC makes room for a whole message as soon as somebody reads it, and waits for the rest for ever.
A caller that announces messages and stalls would make a node hold all of them. Handlers of ours
therefore read their request themselves, after they were admitted: until then gRPC takes no more
than a stream's first window (``SERVER_OPTIONS``).

Invariant: ``READS_MAX`` messages at most are on their way in at a time, each for at most
``seconds``; a caller that waits for a place waits no longer either.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Final

from quorum.fair_share import FairShare
from quorum.transport.link import forget_failure

READS_MAX: Final = 32
"""Requests being received at a time, by all callers. A request that has arrived needs its place
for no longer than a turn of the loop."""
MESSAGE_SECONDS_MAX: Final = 5.0
"""The default: how long a request may take to arrive, and to wait for its place."""


class MessageLateError(Exception):
    """The request did not arrive in time."""


class MessageReads:
    """The places of requests on their way in. Owned by the event loop."""

    def __init__(self, name: str, seconds: float = MESSAGE_SECONDS_MAX) -> None:
        self.places = FairShare(name, READS_MAX)
        """``refused`` counts every request that did not arrive in time."""
        self.seconds = seconds
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    async def read(self, context: Any, caller: str) -> Any:
        """The first message of a call, or gRPC's end of stream.

        Raises:
            MessageLateError: It did not come within ``seconds``; to be answered with a status,
                which ends the read.
        """
        await self._take(caller)
        try:
            # Waited for beside it, not cancelled: that leaks the operation. It ends with the call.
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
                # Given to this call already: others may be waiting for it.
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
        """Give free places to callers that wait, one to each in turn."""
        for caller in list(self._waiting):
            line = self._waiting[caller]
            if line and self.places.has_room(caller):
                # Taken for it at once, so that nobody comes in between.
                self.places.take(caller)
                line.popleft().set_result(None)

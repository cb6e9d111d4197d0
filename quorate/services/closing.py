"""Ends a node's open calls before its gRPC server stops.

A call may be waiting for a change, a confirmation, a command or a client when its node stops. This
module ends such a call with a status that gives the reason. Otherwise gRPC would cancel it without
a reason, and would stop the handler at an arbitrary place.

Invariant: only a wait for a future of our own is interrupted, never an operation of gRPC.
Cancelling the task that awaits a gRPC operation leaks the operation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from google.protobuf.message import Message

from quorate.services.errors import RequestRefusedError
from quorum.errors import ErrorCode


class Closing:
    """Tracks whether a node's services are ending, and the open calls. Owned by the event loop.

    Life-cycle: calls come and go; ``begin`` once; then ``all_ended``.
    """

    def __init__(self, node_id: int) -> None:
        self._node_id = node_id
        self._waiting: set[asyncio.Task[object]] = set()
        self._interrupted: set[asyncio.Task[object]] = set()
        self._notifiers: set[Callable[[], None]] = set()
        self._open = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self.is_begun = False

    @property
    def is_awaited(self) -> bool:
        """Return whether any call waits now."""
        return bool(self._waiting)

    def begin(self) -> None:
        """Interrupt every waiting call, and refuse to wait from now on."""
        if self.is_begun:
            return
        self.is_begun = True
        for task in self._waiting:
            self._interrupted.add(task)
            task.cancel()
        for notify in list(self._notifiers):
            notify()

    async def all_ended(self, seconds: float) -> bool:
        """Return whether every call got its status within ``seconds``.

        A call whose client does not read remains open: only gRPC can end it.
        """
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    @contextmanager
    def call(self) -> Iterator[None]:
        """Track a call until its status is sent."""
        self._open += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._open -= 1
            if self._open == 0:
                self._idle.set()

    @contextmanager
    def waiting(
        self,
        code: ErrorCode = ErrorCode.BROKER_NOT_AVAILABLE,
        details: Callable[[], Message] | None = None,
    ) -> Iterator[None]:
        """Wrap a wait that may be long. Not to be nested, and without operations of gRPC inside.

        Raises:
            RequestRefusedError: ``code`` with ``details``, the node is stopping. On entry always
                BROKER_NOT_AVAILABLE, because nothing was done yet.
        """
        if self.is_begun:
            raise self.refusal(details=details)
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a call must run in a task")
        self._waiting.add(task)
        try:
            yield
        except asyncio.CancelledError:
            # The cancellation comes from ``begin`` or from the client. If from both, no client
            # reads the status.
            if task not in self._interrupted:
                raise
            raise self.refusal(code, details) from None
        finally:
            self._waiting.discard(task)
            if task in self._interrupted:
                self._interrupted.discard(task)
                task.uncancel()

    @contextmanager
    def notifying(self, notify: Callable[[], None]) -> Iterator[None]:
        """Wrap a call that ends itself when ``notify`` is called."""
        self._notifiers.add(notify)
        try:
            yield
        finally:
            self._notifiers.discard(notify)

    def refusal(
        self,
        code: ErrorCode = ErrorCode.BROKER_NOT_AVAILABLE,
        details: Callable[[], Message] | None = None,
    ) -> RequestRefusedError:
        """Return the refusal of a call because the node is stopping."""
        text = f"node {self._node_id} is stopping"
        if code is ErrorCode.OUTCOME_UNKNOWN:
            text += " before the outcome was known"
        return RequestRefusedError(code, text, () if details is None else (details(),))

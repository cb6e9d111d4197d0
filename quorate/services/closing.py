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
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType

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
        self._call = _Call(self)
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

    def call(self) -> AbstractContextManager[None]:
        """Track a call, in a ``with`` statement, until its status is sent."""
        return self._call

    def waiting(
        self,
        code: ErrorCode = ErrorCode.BROKER_NOT_AVAILABLE,
        details: Callable[[], Message] | None = None,
    ) -> AbstractContextManager[None]:
        """Wrap a wait that may be long, in a ``with`` statement.

        Not to be nested, and without operations of gRPC inside. If the node is stopping, it raises
        a ``RequestRefusedError`` of ``code`` with ``details``; on entry always of
        BROKER_NOT_AVAILABLE, because nothing was done yet.
        """
        return _Waiting(self, code, details)

    def begin_call(self) -> None:
        """Count a call that begins; ``end_call`` follows."""
        self._open += 1
        self._idle.clear()

    def end_call(self) -> None:
        """Count the end of a call."""
        self._open -= 1
        if self._open == 0:
            self._idle.set()

    def begin_wait(self, task: asyncio.Task[object]) -> None:
        """Note that a call waits; ``end_wait`` follows. Not while the node is stopping."""
        self._waiting.add(task)

    def end_wait(self, task: asyncio.Task[object]) -> bool:
        """Note that a call's wait is over; return whether ``begin`` interrupted it."""
        self._waiting.discard(task)
        if task not in self._interrupted:
            return False
        self._interrupted.discard(task)
        task.uncancel()
        return True

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


class _Call(AbstractContextManager[None]):
    """Counts open calls. One for all calls: it has no state of its own."""

    __slots__ = ("_closing",)

    def __init__(self, closing: Closing) -> None:
        self._closing = closing

    def __enter__(self) -> None:
        self._closing.begin_call()

    def __exit__(self, *_: object) -> None:
        self._closing.end_call()


class _Waiting(AbstractContextManager[None]):
    """A wait that ``Closing.begin`` may interrupt. Not a generator: every call has one."""

    __slots__ = ("_closing", "_code", "_details", "_task")

    _task: asyncio.Task[object]

    def __init__(
        self, closing: Closing, code: ErrorCode, details: Callable[[], Message] | None
    ) -> None:
        self._closing = closing
        self._code = code
        self._details = details

    def __enter__(self) -> None:
        if self._closing.is_begun:
            raise self._closing.refusal(details=self._details)
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a call must run in a task")
        self._task = task
        self._closing.begin_wait(task)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        is_interrupted = self._closing.end_wait(self._task)
        # The cancellation comes from ``begin`` or from the client. If from both, no client reads
        # the status.
        if is_interrupted and kind is not None and issubclass(kind, asyncio.CancelledError):
            raise self._closing.refusal(self._code, self._details) from None

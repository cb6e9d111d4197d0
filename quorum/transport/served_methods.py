"""The methods of a gRPC server: each is wrapped once, and the tasks of their calls are known.

``Server.stop`` of grpc.aio returns when the calls are over on the wire; the tasks that serve them
may need some more turns of the event loop. A loop that ends then cancels them, and gRPC prints a
traceback for each (1.85).

Wrappers stand around every method, as interceptors would. But an interceptor makes a handler for
every call, and gRPC runs each in a coroutine of its own: three of them took a tenth of the time of
a short call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeAlias

import grpc
from grpc import aio

_UNWIND_S_MAX: Final = 2.0
"""Bound of the wait for tasks that have been cancelled and only have to unwind."""

Behaviour: TypeAlias = Callable[[Any, Any], Any]
"""What serves a call: a coroutine or an asynchronous generator of request and context."""


class Wrapper(Protocol):
    """Stands around every method of a server."""

    def wrap(self, method: str, behaviour: Behaviour, kind: str) -> Behaviour:
        """Return what serves the calls of ``method`` (its full name) in place of ``behaviour``.

        ``kind`` is gRPC's word for its form, such as ``stream_unary``.
        """


class ServedMethods(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc has no types
    """All methods of one server, behind its wrappers. Owned by the event loop.

    Life-cycle: add handlers to it as to a server; add it to the server as its only handler; call
    ``stop`` instead of the server's own.
    """

    def __init__(self, *wrappers: Wrapper) -> None:
        """The first wrapper is the outermost one."""
        self._wrappers = wrappers
        self._handlers: list[grpc.GenericRpcHandler] = []
        self._methods: dict[str, grpc.RpcMethodHandler] = {}
        """Wrapped handlers of methods that were called; never more than there are methods."""
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def count(self) -> int:
        """Calls whose tasks have not ended."""
        return len(self._tasks)

    def add_generic_rpc_handlers(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        """Add handlers; the first one that knows a method serves it."""
        self._handlers.extend(handlers)

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """Return the wrapped handler of a method, None for an unknown one.

        gRPC calls this in the task that serves the call, and the task is tracked.
        """
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        method: str = handler_call_details.method
        handler = self._methods.get(method)
        if handler is None:
            handler = self._wrapped(method, handler_call_details)
            if handler is not None:
                self._methods[method] = handler
        return handler

    async def stop(self, server: aio.Server, grace_s: float | None) -> None:
        """Accept no more calls, cancel the rest after ``grace_s``, and wait for the tasks."""
        await server.stop(grace_s)
        if self._tasks:
            # Tasks whose calls are over on the wire are ending or about to be cancelled.
            await asyncio.wait(self._tasks, timeout=_UNWIND_S_MAX)

    def _wrapped(self, method: str, details: grpc.HandlerCallDetails) -> Any:
        for each in self._handlers:
            handler = each.service(details)
            if handler is None:
                continue
            first = "stream" if handler.request_streaming else "unary"
            kind = f"{first}_{'stream' if handler.response_streaming else 'unary'}"
            behaviour = getattr(handler, kind)
            for wrapper in reversed(self._wrappers):
                behaviour = wrapper.wrap(method, behaviour, kind)
            make = getattr(grpc, f"{kind}_rpc_method_handler")
            return make(behaviour, handler.request_deserializer, handler.response_serializer)
        return None

"""Stop a gRPC server, then the tasks of its calls.

``Server.stop`` of grpc.aio returns when the calls are over on the wire; the tasks that serve them
may need some more turns of the event loop. A loop that ends then cancels them, and gRPC prints a
traceback for each (1.85).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import grpc
from grpc import aio

_UNWIND_S_MAX: Final = 2.0
"""Bound of the wait for tasks that have been cancelled and only have to unwind."""


class RunningCalls(aio.ServerInterceptor):  # type: ignore[misc]  # grpc has no types
    """Tracks the tasks of a server's calls. Owned by the event loop.

    Life-cycle: pass it to ``aio.server`` as the first interceptor; call ``stop`` instead of the
    server's own.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def count(self) -> int:
        """Calls whose tasks have not ended."""
        return len(self._tasks)

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler:
        """Track the current task, which will serve the call; return the handler unchanged."""
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await continuation(handler_call_details)

    async def stop(self, server: aio.Server, grace_s: float | None) -> None:
        """Accept no more calls, cancel the rest after ``grace_s``, and wait for the tasks."""
        await server.stop(grace_s)
        if self._tasks:
            # Tasks whose calls are over on the wire are ending or about to be cancelled.
            await asyncio.wait(self._tasks, timeout=_UNWIND_S_MAX)

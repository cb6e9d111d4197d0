"""Stopping a gRPC server and the tasks behind its calls, in this order and completely.

``Server.stop`` of grpc.aio returns when the wire is done with the calls; the tasks that serve them
may still have some turns of the event loop to go. A loop that ends then cancels them, and gRPC
prints a traceback for each (1.85).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import grpc
from grpc import aio

_UNWIND_S_MAX: Final = 2.0
"""Every task has been cancelled by then: what is left only has to unwind."""


class RunningCalls(aio.ServerInterceptor):  # type: ignore[misc]  # grpc has no types
    """Knows the tasks of a server's calls. Owned by the event loop.

    Life-cycle: give it to ``aio.server`` as its first interceptor; ``stop`` instead of the
    server's own.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def count(self) -> int:
        """Calls whose tasks are not over."""
        return len(self._tasks)

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler:
        """The handler unchanged: this runs in the task that will serve the call."""
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await continuation(handler_call_details)

    async def stop(self, server: aio.Server, grace_s: float | None) -> None:
        """Take no more calls, cancel what is left after ``grace_s``, and wait for the tasks."""
        await server.stop(grace_s)
        if self._tasks:
            # A task whose call is over for the wire is on its way out or about to be cancelled.
            await asyncio.wait(self._tasks, timeout=_UNWIND_S_MAX)

"""Counts all calls that reach a gRPC server, of every service."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import grpc
from grpc import aio

from metrics.observer import Observer
from quorum.transport.served_methods import Behaviour

_NAMES = {status.value[0]: status.name for status in grpc.StatusCode}


class RpcCounter:
    """Reports every call of a method we serve to the observer; owned by the event loop.

    A call of anything unknown has no handler and is not counted, so that a stranger cannot make
    series. A stream is one call, and its length no latency.
    """

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def wrap(self, method: str, behaviour: Behaviour, kind: str) -> Behaviour:
        """Return the method with counting around it; a generator is not counted."""
        if not asyncio.iscoroutinefunction(behaviour):
            return behaviour
        service, _, name = method.lstrip("/").rpartition("/")
        observer, is_unary = self._observer, kind.endswith("_unary")

        async def call(request: Any, context: aio.ServicerContext[Any, Any]) -> Any:
            observer.rpc_started(service, name)
            began = time.perf_counter()
            code = "UNKNOWN"
            try:
                answer = await behaviour(request, context)
                code = _code(context, "OK")
                return answer
            except asyncio.CancelledError:
                code = "CANCELLED"
                raise
            except aio.AbortError:
                code = _code(context, "UNKNOWN")
                raise
            finally:
                seconds = time.perf_counter() - began if is_unary else None
                observer.rpc_handled(service, name, code, seconds=seconds)

        return call


def _code(context: aio.ServicerContext[Any, Any], default: str) -> str:
    """The name of the status set on the context, which may be a code, its number or nothing."""
    code: Any = context.code()
    if not code:
        return default
    found: str = code.name if isinstance(code, grpc.StatusCode) else _NAMES.get(code, default)
    return found

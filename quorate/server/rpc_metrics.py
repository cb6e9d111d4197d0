"""Counts all calls that reach a gRPC server, of every service."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
from grpc import aio

from metrics.observer import Observer

_Method = Callable[[Any, Any], Awaitable[Any]]


class RpcCounter(aio.ServerInterceptor):  # type: ignore[misc]  # grpc has no types
    """Tells the observer about every call of a method we serve; owned by the event loop.

    Names come from the method table: a call of anything unknown has no handler and is not
    counted, so that a stranger cannot make series. A stream is one call, and its length no
    latency.
    """

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler:
        """The handler of the method, with counting around it."""
        handler = await continuation(handler_call_details)
        kind = _kind(handler)
        behaviour = getattr(handler, kind, None)
        if not asyncio.iscoroutinefunction(behaviour):
            return handler
        service, _, method = handler_call_details.method.lstrip("/").rpartition("/")
        counted = self._counted(behaviour, service, method, is_unary=kind.endswith("_unary"))
        return getattr(grpc, f"{kind}_rpc_method_handler")(
            counted, handler.request_deserializer, handler.response_serializer
        )

    def _counted(self, behaviour: _Method, service: str, method: str, *, is_unary: bool) -> _Method:
        async def call(request: Any, context: aio.ServicerContext[Any, Any]) -> Any:
            self._observer.rpc_started(service, method)
            began = time.perf_counter()
            code = grpc.StatusCode.UNKNOWN
            try:
                answer = await behaviour(request, context)
                code = _code(context, grpc.StatusCode.OK)
                return answer
            except asyncio.CancelledError:
                code = grpc.StatusCode.CANCELLED
                raise
            except aio.AbortError:
                code = _code(context, grpc.StatusCode.UNKNOWN)
                raise
            finally:
                seconds = time.perf_counter() - began if is_unary else None
                self._observer.rpc_handled(service, method, code.name, seconds=seconds)

        return call


def _kind(handler: grpc.RpcMethodHandler | None) -> str:
    if handler is None:
        return ""
    first = "stream" if handler.request_streaming else "unary"
    return f"{first}_{'stream' if handler.response_streaming else 'unary'}"


def _code(context: aio.ServicerContext[Any, Any], default: grpc.StatusCode) -> grpc.StatusCode:
    """The status set on the context, which may be a code, its number or nothing."""
    code = context.code()
    if isinstance(code, grpc.StatusCode):
        return code
    for known in grpc.StatusCode:
        if code and known.value[0] == code:
            return known
    return default

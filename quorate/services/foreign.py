"""Services of other packages (health, reflection) on our server, where no bytes raise anything.

What they generate reads a request with protobuf's own parser; where that raises, gRPC logs a
traceback and answers UNKNOWN, and for a method that the package leaves out it logs one as well.
Here an unreadable request ends its call with INVALID_ARGUMENT, as with every service of ours, and
a method that is not there with UNIMPLEMENTED.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import grpc

from quorate.services.answers import HEALTH_AND_REFLECTION
from quorate.services.calls import Context, Malformed, decoder, fail
from quorum.errors import CommandError

_Unary = Callable[[Any, Context], Awaitable[Any]]
_Streaming = Callable[[AsyncIterator[Any], Context], AsyncIterator[Any]]


class ForeignServices:
    """Stands in for the server towards a generated ``add_..._to_server``.

    Takes services whose methods are coroutines of one request, or generators over a stream of
    them; that is what health and reflection have.
    """

    def __init__(self, server: grpc.aio.Server, cluster_id: str) -> None:
        self._server = server
        self._cluster_id = cluster_id

    def add_generic_rpc_handlers(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        """Add them with their requests checked first."""
        guarded = tuple(_Guarded(each, self._cluster_id) for each in handlers)
        self._server.add_generic_rpc_handlers(guarded)

    def add_registered_method_handlers(self, service: str, handlers: object) -> None:
        """The same methods in another shape, which a server of grpc.aio has no use for."""


class _Guarded(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc has no types
    def __init__(self, inner: grpc.GenericRpcHandler, cluster_id: str) -> None:
        self._inner = inner
        self._cluster_id = cluster_id

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """The method's handler with its request checked, or None for somebody else's."""
        handler = self._inner.service(handler_call_details)
        if handler is None:
            return None
        if handler.request_streaming:
            make = grpc.stream_stream_rpc_method_handler
            behaviour: Any = self._streaming(handler.stream_stream)
        elif handler.response_streaming:
            make = grpc.unary_stream_rpc_method_handler
            behaviour = self._unary(handler.unary_stream)
        else:
            make = grpc.unary_unary_rpc_method_handler
            behaviour = self._unary(handler.unary_unary)
        return make(behaviour, decoder(handler.request_deserializer), handler.response_serializer)

    def _unary(self, inner: _Unary) -> _Unary:
        async def call(request: Any, context: Context) -> Any:
            await self._check(request, context)
            try:
                return await inner(request, context)
            except NotImplementedError:
                # How generated code answers for a method that the package leaves out.
                await context.abort(grpc.StatusCode.UNIMPLEMENTED, "this method is not served")

        return call

    def _streaming(self, inner: _Streaming) -> _Streaming:
        async def checked(requests: AsyncIterator[Any], context: Context) -> AsyncIterator[Any]:
            async for request in requests:
                await self._check(request, context)
                yield request

        async def call(requests: AsyncIterator[Any], context: Context) -> AsyncIterator[Any]:
            async for answer in inner(checked(requests, context), context):
                yield answer

        return call

    async def _check(self, request: Any, context: Context) -> None:
        if isinstance(request, Malformed):
            error = CommandError(request.code, f"unreadable request: {request.cause}")
            await fail(context, HEALTH_AND_REFLECTION, error, self._cluster_id)

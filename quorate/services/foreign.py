"""Serves services of other packages (health, reflection, channelz) with our checks of requests.

Their generated code parses a request with protobuf's own parser. If that raises, or if the package
leaves out a method, gRPC logs a traceback and answers UNKNOWN. Here an unreadable request ends
its call with INVALID_ARGUMENT, as with our own services, and a missing method with UNIMPLEMENTED.
Requests are limited in number and in arrival time, as for our own services. A stream without
requests is ended.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import grpc

from quorate.services.admission import Gate
from quorate.services.answers import HEALTH_AND_REFLECTION
from quorate.services.calls import Context, Malformed, decoder, fail, first_message, next_message
from quorate.services.errors import RequestRefusedError
from quorum.errors import CommandError
from quorum.transport.callers import caller_of
from quorum.transport.message_reads import MessageReads
from quorum.transport.served_methods import ServedMethods

_Unary = Callable[[Any, Context], Awaitable[Any]]
_Streaming = Callable[[AsyncIterator[Any], Context], AsyncIterator[Any]]


class ForeignServices:
    """Replaces the server in a call of a generated ``add_..._to_server``.

    Supports methods that are coroutines of one request, or generators over a stream of requests;
    health and reflection have no others.
    """

    def __init__(
        self, methods: ServedMethods, cluster_id: str, reads: MessageReads, streams: Gate
    ) -> None:
        """``streams`` counts calls that stay open: health watches and reflection."""
        self._methods = methods
        self._cluster_id = cluster_id
        self._reads = reads
        self._streams = streams

    def add_generic_rpc_handlers(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        """Add the handlers, wrapped with the check of their requests."""
        guarded = tuple(
            _Guarded(each, self._cluster_id, self._reads, self._streams) for each in handlers
        )
        self._methods.add_generic_rpc_handlers(guarded)

    def add_registered_method_handlers(self, service: str, handlers: object) -> None:
        """Ignore the same methods in a form that a server of grpc.aio does not use."""


class _Guarded(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc has no types
    def __init__(
        self,
        inner: grpc.GenericRpcHandler,
        cluster_id: str,
        reads: MessageReads,
        streams: Gate,
    ) -> None:
        self._inner = inner
        self._cluster_id = cluster_id
        self._reads = reads
        self._streams = streams

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """Return the method's handler with checked requests; None for any other service."""
        handler = self._inner.service(handler_call_details)
        if handler is None:
            return None
        if handler.request_streaming:
            make = grpc.stream_stream_rpc_method_handler
            behaviour: Any = self._streaming(handler.stream_stream)
        elif handler.response_streaming:
            make = grpc.stream_stream_rpc_method_handler
            behaviour = self._placed(self._unary(handler.unary_stream))
        else:
            make = grpc.stream_unary_rpc_method_handler
            behaviour = self._unary(handler.unary_unary)
        return make(behaviour, decoder(handler.request_deserializer), handler.response_serializer)

    def _placed(self, inner: _Unary) -> _Unary:
        """Hold a place for a call that stays open as long as the caller wants."""

        async def call(requests: object, context: Context) -> Any:
            try:
                with self._streams.passing(caller_of(context)):
                    return await inner(requests, context)
            except RequestRefusedError as error:
                await fail(context, HEALTH_AND_REFLECTION, error, self._cluster_id)
                return None

        return call

    def _unary(self, inner: _Unary) -> _Unary:
        async def call(_requests: object, context: Context) -> Any:
            try:
                request = await first_message(self._reads, context, caller_of(context))
            except CommandError as error:
                await fail(context, HEALTH_AND_REFLECTION, error, self._cluster_id)
                return None
            await self._check(request, context)
            try:
                answer = await inner(request, context)
            except NotImplementedError:
                # Generated code does this for a method that the package leaves out.
                await context.abort(grpc.StatusCode.UNIMPLEMENTED, "this method is not served")
                raise  # Never reached: abort raises.
            if answer is None:
                # Channelz sets a status and returns nothing; gRPC would fail to serialize it.
                status, words = context.code(), context.details()
                await context.abort(status or grpc.StatusCode.INTERNAL, words or "no answer")
            return answer

        return call

    def _streaming(self, inner: _Streaming) -> _Streaming:
        async def checked(context: Context) -> AsyncIterator[Any]:
            caller = caller_of(context)
            while True:
                try:
                    request = await next_message(self._reads, context, caller)
                except CommandError as error:
                    await fail(context, HEALTH_AND_REFLECTION, error, self._cluster_id)
                    return
                if request is grpc.aio.EOF:
                    return
                await self._check(request, context)
                yield request

        # Not gRPC's iterator: it would read on any number of streams, without a time limit.
        async def call(_requests: object, context: Context) -> AsyncIterator[Any]:
            async for answer in inner(checked(context), context):
                yield answer

        return call

    async def _check(self, request: Any, context: Context) -> None:
        if isinstance(request, Malformed):
            error = CommandError(request.code, f"unreadable request: {request.cause}")
            await fail(context, HEALTH_AND_REFLECTION, error, self._cluster_id)

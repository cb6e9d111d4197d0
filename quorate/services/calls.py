"""Wraps every call: decodes the request, enforces the deadline, maps errors to rich statuses.

A servicer's method gets only well-formed messages and raises only ``QuorateError``. No bytes from a
client can crash the node or cause a traceback in its log.

Invariant: each of these cases ends with a status and an ``ErrorInfo``: undecodable bytes or a
missing deadline with INVALID_ARGUMENT, messages and answers above the size limit with
RESOURCE_EXHAUSTED, an expired deadline with DEADLINE_EXCEEDED, a stopping node with UNAVAILABLE.
Every answer names the cluster of the node.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message

from quorate.client.cluster import CLUSTER_ID_KEY
from quorate.client.limits import MESSAGE_BYTES_MAX
from quorate.services.admission import Gate
from quorate.services.answers import name_refusal
from quorate.services.closing import Closing
from quorate.services.errors import code_of, rich_status
from quorum.answered import Form
from quorum.errors import CommandError, ErrorCode, QuorateError
from quorum.transport.answers import DETAILS_KEY, abort
from quorum.transport.callers import caller_of
from quorum.transport.message_reads import MessageLateError, MessageReads

RequestT = TypeVar("RequestT", bound=Message)
ResponseT = TypeVar("ResponseT", bound=Message)
Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
OnFailure: TypeAlias = Callable[[str, ErrorCode], None]
"""Called for every call that ends in an error, with the method's name and the code."""


@dataclass(frozen=True, slots=True)
class CallPolicy:
    """What applies to all calls of one node."""

    cluster_id: str
    gate: Gate
    """For unary calls; streams have their own gates."""
    reads: MessageReads
    closing: Closing
    on_failure: OnFailure


_STATUS_BY_NUMBER = {status.value[0]: status for status in grpc.StatusCode}


@dataclass(frozen=True, slots=True)
class Malformed:
    """Represents a message that could not be decoded or is too large."""

    cause: str
    code: ErrorCode = ErrorCode.INVALID_REQUEST


def decoder(parse: Callable[[bytes], RequestT]) -> Callable[[bytes], RequestT | Malformed]:
    """Return a deserializer that returns ``Malformed`` where protobuf's ``parse`` raises.

    It also rejects messages above ``MESSAGE_BYTES_MAX``. gRPC accepts larger messages on a port
    that also serves peers.
    """

    def decode(data: bytes) -> RequestT | Malformed:
        if len(data) > MESSAGE_BYTES_MAX:
            cause = f"{len(data)} bytes, more than {MESSAGE_BYTES_MAX}"
            return Malformed(cause, ErrorCode.MESSAGE_TOO_LARGE)
        try:
            return parse(data)
        except DecodeError as error:
            return Malformed(str(error))

    return decode


def encode(message: Message | bytes) -> bytes:
    """Serialize; bytes are a message that was serialized before."""
    if isinstance(message, bytes):
        return message
    data: bytes = message.SerializeToString()
    return data


def well_formed(message: RequestT | Malformed, kind: type[RequestT]) -> RequestT:
    """Return the message.

    Raises:
        CommandError: INVALID_REQUEST if its bytes could not be decoded, MESSAGE_TOO_LARGE if
            there were too many.
    """
    if isinstance(message, Malformed):
        raise CommandError(message.code, f"not a {kind.DESCRIPTOR.name}: {message.cause}")
    return message


def _fitting(message: Message | bytes, name: str) -> bytes:
    """Return the answer of method ``name``, serialized.

    Raises:
        CommandError: MESSAGE_TOO_LARGE if the client could not receive it.
    """
    data = encode(message)
    if len(data) > MESSAGE_BYTES_MAX:
        raise CommandError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the answer of {name} has {len(data)} bytes, more than {MESSAGE_BYTES_MAX}; "
            "request less at a time",
        )
    return data


async def fail(context: Context, name: str, error: QuorateError, cluster_id: str) -> None:
    """End the call of method ``name`` with the status of ``error``; always raises."""
    status = rich_status(error)
    name_refusal(name, Form.STATUS, code_of(error))
    await abort(
        context,
        _STATUS_BY_NUMBER[status.code],
        status.message,
        ((DETAILS_KEY, status.SerializeToString()), (CLUSTER_ID_KEY, cluster_id)),
    )


async def first_message(reads: MessageReads, context: Context, caller: str) -> Any:
    """Return the request of a call, or ``Malformed``.

    Raises:
        CommandError: REQUEST_TIMED_OUT, it did not arrive in time.
    """
    message = await next_message(reads, context, caller)
    return Malformed("there is no message") if message is grpc.aio.EOF else message


async def next_message(reads: MessageReads, context: Context, caller: str) -> Any:
    """Return the next request of a stream, ``Malformed``, or gRPC's end of stream.

    Raises:
        CommandError: REQUEST_TIMED_OUT, it did not arrive in time.
    """
    try:
        return await reads.read(context, caller)
    except MessageLateError:
        raise CommandError(
            ErrorCode.REQUEST_TIMED_OUT,
            f"the request did not arrive within {reads.seconds:g} s",
        ) from None


def seconds_left(context: Context) -> float:
    """Return the seconds until the call's deadline.

    Raises:
        CommandError: INVALID_REQUEST without a deadline, REQUEST_TIMED_OUT if it has expired.
    """
    left: float | None = context.time_remaining()
    if left is None:
        raise CommandError(ErrorCode.INVALID_REQUEST, "the call has no deadline; set one")
    if left <= 0:
        raise CommandError(ErrorCode.REQUEST_TIMED_OUT, "the deadline had expired on arrival")
    return left


def unary(
    method: Callable[[RequestT, Context], Awaitable[ResponseT]],
    request_type: type[RequestT],
    *,
    name: str,
    policy: CallPolicy,
    is_change: bool = False,
) -> grpc.RpcMethodHandler[Any, Any]:
    """Return a handler for ``method`` that requires a deadline and reports errors as statuses.

    Calls beyond the maximum of the gate are refused with RESOURCE_EXHAUSTED. A call in progress
    when the node stops ends with BROKER_NOT_AVAILABLE, a change with OUTCOME_UNKNOWN.
    """
    interrupted = ErrorCode.OUTCOME_UNKNOWN if is_change else ErrorCode.BROKER_NOT_AVAILABLE
    closing, gate, reads = policy.closing, policy.gate, policy.reads
    named_cluster = ((CLUSTER_ID_KEY, policy.cluster_id),)

    async def handle(_requests: object, context: Context) -> bytes | None:
        context.set_trailing_metadata(named_cluster)
        with closing.call():
            try:
                seconds_left(context)
                caller = caller_of(context)
                with gate.passing(caller):
                    request = await first_message(reads, context, caller)
                    with closing.waiting(interrupted):
                        answer = await method(well_formed(request, request_type), context)
                        return _fitting(answer, name)
            except QuorateError as error:
                policy.on_failure(name, code_of(error))
                await fail(context, name, error, policy.cluster_id)
                return None

    # Registered as a stream of requests, which is the same on the wire, because gRPC would
    # otherwise read the message before ``handle`` runs.
    return grpc.stream_unary_rpc_method_handler(
        handle, request_deserializer=decoder(request_type.FromString), response_serializer=encode
    )


def server_stream(
    serve: Callable[[RequestT, Context], Awaitable[None]],
    request_type: type[RequestT],
    *,
    name: str,
    policy: CallPolicy,
) -> grpc.RpcMethodHandler[Any, Any]:
    """Return a handler that writes to its context; a deadline is optional."""

    async def run(context: Context) -> None:
        request = await first_message(policy.reads, context, caller_of(context))
        await context.send_initial_metadata(((CLUSTER_ID_KEY, policy.cluster_id),))
        await serve(well_formed(request, request_type), context)

    return _stream(run, request_type, name=name, policy=policy)


def bidirectional_stream(
    serve: Callable[[Context], Awaitable[None]],
    request_type: type[RequestT],
    *,
    name: str,
    policy: CallPolicy,
) -> grpc.RpcMethodHandler[Any, Any]:
    """Return a handler that reads from and writes to its context; a deadline is optional."""

    async def run(context: Context) -> None:
        await context.send_initial_metadata(((CLUSTER_ID_KEY, policy.cluster_id),))
        await serve(context)

    return _stream(run, request_type, name=name, policy=policy)


def _stream(
    run: Callable[[Context], Awaitable[None]],
    request_type: type[RequestT],
    *,
    name: str,
    policy: CallPolicy,
) -> grpc.RpcMethodHandler[Any, Any]:
    """Return a handler around ``run`` that reports errors as statuses."""

    async def handle(_requests: object, context: Context) -> None:
        with policy.closing.call():
            try:
                await run(context)
            except QuorateError as error:
                policy.on_failure(name, code_of(error))
                await fail(context, name, error, policy.cluster_id)

    return grpc.stream_stream_rpc_method_handler(
        handle, request_deserializer=decoder(request_type.FromString), response_serializer=encode
    )

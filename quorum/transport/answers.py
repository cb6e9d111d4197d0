"""Every answer of RaftService besides success, and the only functions that send a refusal.

Each request declares the core's codes (``quorum/core/messages/refusals.py``). The transport adds
``OWN_CODES``, and the statuses that end calls and streams without the core; of those, only that of
LOG_INCARNATION_MISMATCH has a code.

See: docs/reference/error-codes.md, "What a service refuses".
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

import grpc
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status
from grpc import aio

from quorum.answered import Form, Refusal, Service, notify
from quorum.core.messages.fetch_messages import FetchRequest
from quorum.core.messages.message_types import Request
from quorum.core.messages.refusals import Codes
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest
from quorum.errors import ErrorCode
from quorum.transport.link import EXCHANGE_METHOD

ERROR_DOMAIN: Final = "quorate"
DETAILS_KEY: Final = "grpc-status-details-bin"

_S = grpc.StatusCode
Statuses = frozenset[grpc.StatusCode]

OWN_CODES: Mapping[type[Request], Codes] = {
    FetchSnapshotRequest: frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}),
}
"""Codes of the transport itself, for partitions other than the core's log."""

_OF_A_CALL: Statuses = frozenset(
    {_S.INVALID_ARGUMENT, _S.RESOURCE_EXHAUSTED, _S.DEADLINE_EXCEEDED, _S.UNAVAILABLE}
)
_OF_A_BOUND_CALL: Statuses = _OF_A_CALL | {_S.PERMISSION_DENIED}
_OF_AN_ELECTION: Statuses = _OF_A_BOUND_CALL | {_S.FAILED_PRECONDITION}

STATUSES: Mapping[str, Statuses] = {
    "Vote": _OF_AN_ELECTION,
    "BeginQuorumEpoch": _OF_AN_ELECTION,
    "EndQuorumEpoch": _OF_AN_ELECTION,
    "Fetch": _OF_A_BOUND_CALL,
    "FetchSnapshot": _OF_A_BOUND_CALL,
    "ChainDigest": _OF_A_BOUND_CALL,
    EXCHANGE_METHOD: frozenset(
        {
            _S.INVALID_ARGUMENT,
            _S.RESOURCE_EXHAUSTED,
            _S.DEADLINE_EXCEEDED,
            _S.FAILED_PRECONDITION,
            _S.PERMISSION_DENIED,
        }
    ),
}
"""By method: the statuses with which we end a call or stream, besides gRPC's own."""


def kind_of(request: type[Request]) -> str:
    """Return the name of a request in the tables."""
    return request.__name__.removesuffix("Request")


def codes_of(request: type[Request]) -> Codes:
    """Return every code besides NONE in answers to a request, by stream or unary."""
    found = request.refusals | OWN_CODES.get(request, frozenset())
    if issubclass(request, FetchRequest | FetchSnapshotRequest):
        found |= request.relay_refusals
    return found


def name_refusal(request: type[Request], error: ErrorCode) -> None:
    """Notify listeners of the error code of an answer, unless it is NONE."""
    if error is not ErrorCode.NONE:
        notify(Refusal(Service.PEERS, kind_of(request), Form.ANSWER, error.name))


async def end(
    context: Any,
    method: str,
    status: grpc.StatusCode,
    details: str,
    code: ErrorCode = ErrorCode.NONE,
) -> NoReturn:
    """End a call or stream. Always raises, to end its handler.

    A refusal with an error code has it in a google.rpc.Status, as those of other services do.
    """
    notify(Refusal(Service.PEERS, method, Form.STATUS, status.name))
    trailing: tuple[tuple[str, bytes], ...] = ()
    if code is not ErrorCode.NONE:
        reason = {"error_code": str(int(code))}
        rich = Status(code=status.value[0], message=details)
        rich.details.add().Pack(ErrorInfo(reason=code.name, domain=ERROR_DOMAIN, metadata=reason))
        trailing = ((DETAILS_KEY, rich.SerializeToString()),)
    await abort(context, status, details, trailing)
    raise AssertionError("abort raises")


async def abort(
    context: Any,
    status: grpc.StatusCode,
    details: str,
    trailing: Sequence[tuple[str, str | bytes]] = (),
) -> None:
    """End a call or stream with a status, unless its deadline or its client has ended it already.

    Raises:
        AbortError: To end the handler.
        CancelledError: To end the handler if the call is over already.
    """
    try:
        await context.abort(status, details, trailing_metadata=tuple(trailing))
    except aio.InternalError as error:
        # gRPC logs a traceback for every other exception; short deadlines would fill the log.
        raise asyncio.CancelledError("the call was over") from error

"""Maps our errors to gRPC: code, status, details.

An ``ErrorCode`` names its gRPC status; every class of ``QuorateError`` has an ``ErrorCode`` here.
A status carries ``google.rpc.ErrorInfo`` (reason = the code's name, domain ``quorate``) and, if it
helps the client, ``LeaderHint``, ``OffsetBounds``, ``DivergenceHint``, ``KnownProducer`` or
``RetryInfo``.

See: docs/reference/error-codes.md (The codes).
"""

from __future__ import annotations

from collections.abc import Sequence

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from quorum.errors import (
    CommandError,
    ConfigError,
    CorruptBatchError,
    DiskFullError,
    ElectionStateError,
    ErrorCode,
    IdentityDamagedError,
    IdentityError,
    ListenError,
    LogDamagedError,
    LogQuarantinedError,
    PeerProtocolError,
    QuorateError,
    QuorumUsageError,
    RecordCodecError,
    ReplayError,
    SnapshotCorruptError,
    StorageError,
    UnknownRecordError,
)
from quorum.transport.answers import ERROR_DOMAIN
from quorum.v1.errors_pb2 import LeaderHint

RETRY_DELAY_MS = 20
"""Minimum time, in ms, before a client should repeat the request."""
MESSAGE_CHARACTERS_MAX = 1024
"""Maximum length of an error's text; gRPC refuses header lists above 8 KiB."""

CODE_OF_ERROR: dict[type[QuorateError], ErrorCode] = {
    QuorumUsageError: ErrorCode.INVALID_REQUEST,
    ConfigError: ErrorCode.INVALID_CONFIG,
    StorageError: ErrorCode.UNKNOWN_SERVER_ERROR,
    DiskFullError: ErrorCode.RESOURCE_EXHAUSTED,
    CorruptBatchError: ErrorCode.CORRUPT_MESSAGE,
    LogDamagedError: ErrorCode.CORRUPT_MESSAGE,
    ListenError: ErrorCode.UNKNOWN_SERVER_ERROR,
    LogQuarantinedError: ErrorCode.CORRUPT_MESSAGE,
    SnapshotCorruptError: ErrorCode.CORRUPT_MESSAGE,
    IdentityDamagedError: ErrorCode.CORRUPT_MESSAGE,
    IdentityError: ErrorCode.UNKNOWN_SERVER_ERROR,
    ElectionStateError: ErrorCode.CORRUPT_MESSAGE,
    UnknownRecordError: ErrorCode.UNSUPPORTED_VERSION,
    RecordCodecError: ErrorCode.CORRUPT_MESSAGE,
    ReplayError: ErrorCode.CORRUPT_MESSAGE,
    PeerProtocolError: ErrorCode.INVALID_REQUEST,
    QuorateError: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""By class; ``CommandError`` is absent because it has its own code."""

_REDIRECTING = frozenset({ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER})


class RequestRefusedError(CommandError):
    """A request refused by a service, with the details that the client needs to continue."""

    def __init__(self, code: ErrorCode, message: str, details: Sequence[Message] = ()) -> None:
        super().__init__(code, message)
        self.details = tuple(details)


def code_of(error: QuorateError) -> ErrorCode:
    """Return the protocol code of an error: its own, or that of its nearest class in the table."""
    if isinstance(error, CommandError):
        return error.code
    for kind in type(error).__mro__:
        code = CODE_OF_ERROR.get(kind)
        if code is not None:
            return code
    return ErrorCode.UNKNOWN_SERVER_ERROR


def status_of(code: ErrorCode, details: Sequence[Message] = ()) -> grpc.StatusCode:
    """Return the gRPC status of a code. "Not leader" without a known leader is UNAVAILABLE."""
    if code in _REDIRECTING and not any(
        isinstance(detail, LeaderHint) and detail.leader_id >= 0 for detail in details
    ):
        return grpc.StatusCode.UNAVAILABLE
    return grpc.StatusCode[code.status]


def rich_status(error: QuorateError) -> Status:
    """Return the google.rpc.Status that a call ending with ``error`` reports.

    The text of a storage error names files of the server. The client gets only the code and the
    class of the error; the server's log has the full text.
    """
    code = code_of(error)
    details = error.details if isinstance(error, RequestRefusedError) else ()
    number, _ = status_of(code, details).value
    text = str(error) if not isinstance(error, StorageError) else type(error).__name__
    status = Status(code=number, message=text[:MESSAGE_CHARACTERS_MAX])
    status.details.add().Pack(
        ErrorInfo(reason=code.name, domain=ERROR_DOMAIN, metadata={"error_code": str(int(code))})
    )
    for detail in details:
        status.details.add().Pack(detail)
    if code.is_retriable:
        delay = Duration()
        delay.FromMilliseconds(RETRY_DELAY_MS)
        status.details.add().Pack(RetryInfo(retry_delay=delay))
    return status

"""The one table from our errors to gRPC: code, status, details.

Every ``ErrorCode`` has a gRPC status and every class of ``QuorateError`` an ``ErrorCode``. A
status carries ``google.rpc.ErrorInfo`` (reason = the code's name, domain ``quorate``), and where
it helps a ``LeaderHint``, ``OffsetBounds``, ``DivergenceHint`` or ``RetryInfo``.

See: docs/reference/client-protocol.md (Error codes).
"""

from __future__ import annotations

from collections.abc import Sequence

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from quorum.errors import (
    RETRIABLE_CODES,
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
from quorum.v1.errors_pb2 import LeaderHint

ERROR_DOMAIN = "quorate"
DETAILS_KEY = "grpc-status-details-bin"
RETRY_DELAY_MS = 20
"""What a client is told to wait at least before it asks again."""
MESSAGE_CHARACTERS_MAX = 1024
"""Longest text of an error; header lists above 8 KiB are refused by gRPC itself."""

_S = grpc.StatusCode

STATUS_OF_CODE: dict[ErrorCode, grpc.StatusCode] = {
    ErrorCode.UNKNOWN_SERVER_ERROR: _S.INTERNAL,
    ErrorCode.NONE: _S.OK,
    ErrorCode.OFFSET_OUT_OF_RANGE: _S.OUT_OF_RANGE,
    ErrorCode.CORRUPT_MESSAGE: _S.DATA_LOSS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: _S.NOT_FOUND,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: _S.FAILED_PRECONDITION,
    ErrorCode.REQUEST_TIMED_OUT: _S.DEADLINE_EXCEEDED,
    ErrorCode.BROKER_NOT_AVAILABLE: _S.UNAVAILABLE,
    ErrorCode.MESSAGE_TOO_LARGE: _S.RESOURCE_EXHAUSTED,
    ErrorCode.INVALID_TOPIC: _S.INVALID_ARGUMENT,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: _S.PERMISSION_DENIED,
    ErrorCode.UNSUPPORTED_VERSION: _S.FAILED_PRECONDITION,
    ErrorCode.TOPIC_ALREADY_EXISTS: _S.ALREADY_EXISTS,
    ErrorCode.INVALID_PARTITIONS: _S.INVALID_ARGUMENT,
    ErrorCode.INVALID_REPLICATION_FACTOR: _S.INVALID_ARGUMENT,
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: _S.INVALID_ARGUMENT,
    ErrorCode.INVALID_CONFIG: _S.INVALID_ARGUMENT,
    ErrorCode.NOT_CONTROLLER: _S.FAILED_PRECONDITION,
    ErrorCode.INVALID_REQUEST: _S.INVALID_ARGUMENT,
    ErrorCode.POLICY_VIOLATION: _S.FAILED_PRECONDITION,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: _S.ABORTED,
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: _S.ALREADY_EXISTS,
    ErrorCode.INVALID_PRODUCER_EPOCH: _S.ABORTED,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: _S.ABORTED,
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: _S.INVALID_ARGUMENT,
    ErrorCode.CONCURRENT_TRANSACTIONS: _S.ABORTED,
    ErrorCode.UNKNOWN_PRODUCER_ID: _S.NOT_FOUND,
    ErrorCode.FENCED_LEADER_EPOCH: _S.ABORTED,
    ErrorCode.UNKNOWN_LEADER_EPOCH: _S.UNAVAILABLE,
    ErrorCode.STALE_BROKER_EPOCH: _S.ABORTED,
    ErrorCode.OFFSET_NOT_AVAILABLE: _S.UNAVAILABLE,
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: _S.FAILED_PRECONDITION,
    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS: _S.FAILED_PRECONDITION,
    ErrorCode.INVALID_UPDATE_VERSION: _S.ABORTED,
    ErrorCode.FEATURE_UPDATE_FAILED: _S.FAILED_PRECONDITION,
    ErrorCode.SNAPSHOT_NOT_FOUND: _S.NOT_FOUND,
    ErrorCode.POSITION_OUT_OF_RANGE: _S.OUT_OF_RANGE,
    ErrorCode.UNKNOWN_TOPIC_ID: _S.NOT_FOUND,
    ErrorCode.DUPLICATE_BROKER_REGISTRATION: _S.ALREADY_EXISTS,
    ErrorCode.BROKER_ID_NOT_REGISTERED: _S.NOT_FOUND,
    ErrorCode.INCONSISTENT_TOPIC_ID: _S.INVALID_ARGUMENT,
    ErrorCode.INCONSISTENT_CLUSTER_ID: _S.INVALID_ARGUMENT,
    ErrorCode.INELIGIBLE_REPLICA: _S.FAILED_PRECONDITION,
    ErrorCode.NEW_LEADER_ELECTED: _S.ABORTED,
    ErrorCode.INVALID_REGISTRATION: _S.INVALID_ARGUMENT,
    ErrorCode.INVALID_VOTER_KEY: _S.INVALID_ARGUMENT,
    ErrorCode.DUPLICATE_VOTER: _S.ALREADY_EXISTS,
    ErrorCode.VOTER_NOT_FOUND: _S.NOT_FOUND,
    ErrorCode.CONTROLLER_ID_NOT_REGISTERED: _S.NOT_FOUND,
    # Neither done nor failed: only a repeat under the same sequence can tell.
    ErrorCode.OUTCOME_UNKNOWN: _S.UNAVAILABLE,
    ErrorCode.RESOURCE_EXHAUSTED: _S.RESOURCE_EXHAUSTED,
    ErrorCode.QUEUE_FULL: _S.RESOURCE_EXHAUSTED,
    ErrorCode.PRODUCER_WINDOW_EXCEEDED: _S.RESOURCE_EXHAUSTED,
    ErrorCode.VOTER_REMOVED: _S.FAILED_PRECONDITION,
    ErrorCode.DIGEST_MISMATCH: _S.DATA_LOSS,
    ErrorCode.REPLICA_REGRESSED: _S.DATA_LOSS,
}

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
"""By class; ``CommandError`` is absent because it carries its code itself."""

_REDIRECTING = frozenset({ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER})


class RequestRefusedError(CommandError):
    """A request refused by a service, with the details that help the client go on."""

    def __init__(self, code: ErrorCode, message: str, details: Sequence[Message] = ()) -> None:
        super().__init__(code, message)
        self.details = tuple(details)


def code_of(error: QuorateError) -> ErrorCode:
    """The protocol code of an error: its own, or that of its nearest class in the table."""
    if isinstance(error, CommandError):
        return error.code
    for kind in type(error).__mro__:
        code = CODE_OF_ERROR.get(kind)
        if code is not None:
            return code
    return ErrorCode.UNKNOWN_SERVER_ERROR


def status_of(code: ErrorCode, details: Sequence[Message] = ()) -> grpc.StatusCode:
    """The gRPC status of a code. "Not leader" without a known leader is UNAVAILABLE."""
    if code in _REDIRECTING and not any(
        isinstance(detail, LeaderHint) and detail.leader_id >= 0 for detail in details
    ):
        return grpc.StatusCode.UNAVAILABLE
    return STATUS_OF_CODE[code]


def rich_status(error: QuorateError) -> Status:
    """The google.rpc.Status that a call ending in ``error`` reports.

    Storage errors name files of the server; a client gets the code and the class of the error
    only, the server's log has the rest.
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
    if code in RETRIABLE_CODES:
        delay = Duration()
        delay.FromMilliseconds(RETRY_DELAY_MS)
        status.details.add().Pack(RetryInfo(retry_delay=delay))
    return status

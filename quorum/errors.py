"""Errors and protocol codes, with one name for each.

There are two forms, never mixed. A *refusal* between peers is a value: an ``ErrorCode`` in a
response. A *failure* is an exception below ``QuorateError``. ``InvariantViolation`` is neither: it
reports a bug of ours, derives from ``BaseException`` so that no handler catches it, and ends the
process.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Self

_RETRIABLE = True


class ErrorCode(IntEnum):
    """Protocol error codes; each line defines everything about one code (ADR 55).

    The value is Kafka's number, the text form the member's name. Then follow, by their names, the
    gRPC status of a call and the exit code of a command that end with it. Clients get the codes
    from ``common.proto``.
    """

    _value_: int
    status: str
    exit: str
    is_retriable: bool
    """Whether the same call can succeed later without a change by the caller."""

    def __new__(
        cls,
        number: int,
        status: str = "",
        exit_name: str = "",
        is_retriable: bool = False,  # noqa: FBT001, FBT002 - stands in a table
    ) -> Self:
        """Create a code with that number."""
        code = int.__new__(cls, number)
        code._value_ = number
        code.status = status
        code.exit = exit_name
        code.is_retriable = is_retriable
        return code

    UNKNOWN_SERVER_ERROR = -1, "INTERNAL", "FAILED"
    NONE = 0, "OK", "FAILED"
    OFFSET_OUT_OF_RANGE = 1, "OUT_OF_RANGE", "FAILED"
    CORRUPT_MESSAGE = 2, "DATA_LOSS", "DAMAGED"
    UNKNOWN_TOPIC_OR_PARTITION = 3, "NOT_FOUND", "NOT_FOUND"
    NOT_LEADER_OR_FOLLOWER = 6, "FAILED_PRECONDITION", "UNREACHABLE", _RETRIABLE
    REQUEST_TIMED_OUT = 7, "DEADLINE_EXCEEDED", "UNREACHABLE", _RETRIABLE
    BROKER_NOT_AVAILABLE = 8, "UNAVAILABLE", "UNREACHABLE", _RETRIABLE
    MESSAGE_TOO_LARGE = 10, "RESOURCE_EXHAUSTED", "FAILED"
    INVALID_TOPIC = 17, "INVALID_ARGUMENT", "USAGE"
    TOPIC_AUTHORIZATION_FAILED = 29, "PERMISSION_DENIED", "REFUSED"
    GROUP_AUTHORIZATION_FAILED = 30, "PERMISSION_DENIED", "REFUSED"
    CLUSTER_AUTHORIZATION_FAILED = 31, "PERMISSION_DENIED", "REFUSED"
    UNSUPPORTED_SASL_MECHANISM = 33, "INVALID_ARGUMENT", "USAGE"
    UNSUPPORTED_VERSION = 35, "FAILED_PRECONDITION", "FAILED"
    TOPIC_ALREADY_EXISTS = 36, "ALREADY_EXISTS", "CONFLICT"
    INVALID_PARTITIONS = 37, "INVALID_ARGUMENT", "USAGE"
    # The command line accepts no factor below 1, so the brokers are the cause: too few exist, or
    # all are fenced. The same call may succeed later.
    INVALID_REPLICATION_FACTOR = 38, "INVALID_ARGUMENT", "CONFLICT"
    INVALID_REPLICA_ASSIGNMENT = 39, "INVALID_ARGUMENT", "USAGE"
    INVALID_CONFIG = 40, "INVALID_ARGUMENT", "USAGE"
    NOT_CONTROLLER = 41, "FAILED_PRECONDITION", "UNREACHABLE", _RETRIABLE
    INVALID_REQUEST = 42, "INVALID_ARGUMENT", "USAGE"
    POLICY_VIOLATION = 44, "FAILED_PRECONDITION", "REFUSED"
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, "ABORTED", "FAILED"
    DUPLICATE_SEQUENCE_NUMBER = 46, "ALREADY_EXISTS", "FAILED"
    INVALID_PRODUCER_EPOCH = 47, "ABORTED", "FAILED"
    INVALID_PRODUCER_ID_MAPPING = 49, "ABORTED", "FAILED"
    INVALID_TRANSACTION_TIMEOUT = 50, "INVALID_ARGUMENT", "FAILED"
    CONCURRENT_TRANSACTIONS = 51, "ABORTED", "UNREACHABLE", _RETRIABLE
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, "PERMISSION_DENIED", "REFUSED"
    SASL_AUTHENTICATION_FAILED = 58, "UNAUTHENTICATED", "REFUSED"
    UNKNOWN_PRODUCER_ID = 59, "NOT_FOUND", "FAILED"
    FENCED_LEADER_EPOCH = 74, "ABORTED", "CONFLICT", _RETRIABLE
    UNKNOWN_LEADER_EPOCH = 75, "UNAVAILABLE", "UNREACHABLE", _RETRIABLE
    STALE_BROKER_EPOCH = 77, "ABORTED", "CONFLICT"
    OFFSET_NOT_AVAILABLE = 78, "UNAVAILABLE", "UNREACHABLE", _RETRIABLE
    PREFERRED_LEADER_NOT_AVAILABLE = 80, "FAILED_PRECONDITION", "CONFLICT"
    NO_REASSIGNMENT_IN_PROGRESS = 85, "FAILED_PRECONDITION", "NOT_FOUND"
    # Of client libraries, for a writer whose name another process has taken. Nodes send
    # INVALID_PRODUCER_EPOCH (ADR 68).
    PRODUCER_FENCED = 90, "ABORTED", "CONFLICT"
    RESOURCE_NOT_FOUND = 91, "NOT_FOUND", "NOT_FOUND"
    UNACCEPTABLE_CREDENTIAL = 93, "INVALID_ARGUMENT", "USAGE"
    INVALID_UPDATE_VERSION = 95, "ABORTED", "CONFLICT"
    FEATURE_UPDATE_FAILED = 96, "FAILED_PRECONDITION", "REFUSED"
    SNAPSHOT_NOT_FOUND = 98, "NOT_FOUND", "NOT_FOUND"
    POSITION_OUT_OF_RANGE = 99, "OUT_OF_RANGE", "FAILED"
    UNKNOWN_TOPIC_ID = 100, "NOT_FOUND", "NOT_FOUND"
    DUPLICATE_BROKER_REGISTRATION = 101, "ALREADY_EXISTS", "CONFLICT"
    BROKER_ID_NOT_REGISTERED = 102, "NOT_FOUND", "NOT_FOUND"
    INCONSISTENT_TOPIC_ID = 103, "INVALID_ARGUMENT", "CONFLICT"
    INCONSISTENT_CLUSTER_ID = 104, "INVALID_ARGUMENT", "CONFLICT"
    INELIGIBLE_REPLICA = 107, "FAILED_PRECONDITION", "REFUSED", _RETRIABLE
    NEW_LEADER_ELECTED = 108, "ABORTED", "FAILED"
    INVALID_REGISTRATION = 119, "INVALID_ARGUMENT", "USAGE"
    INVALID_VOTER_KEY = 125, "INVALID_ARGUMENT", "FAILED"
    DUPLICATE_VOTER = 126, "ALREADY_EXISTS", "CONFLICT"
    VOTER_NOT_FOUND = 127, "NOT_FOUND", "NOT_FOUND"
    CONTROLLER_ID_NOT_REGISTERED = 136, "NOT_FOUND", "NOT_FOUND"
    # Our own codes, outside Kafka's range.
    # Neither done nor failed: only a retry under the same sequence can tell.
    OUTCOME_UNKNOWN = 1001, "UNAVAILABLE", "UNREACHABLE", _RETRIABLE
    RESOURCE_EXHAUSTED = 1002, "RESOURCE_EXHAUSTED", "FAILED"
    QUEUE_FULL = 1003, "RESOURCE_EXHAUSTED", "UNREACHABLE", _RETRIABLE
    PRODUCER_WINDOW_EXCEEDED = 1004, "RESOURCE_EXHAUSTED", "FAILED"
    VOTER_REMOVED = 1005, "FAILED_PRECONDITION", "REFUSED"
    DIGEST_MISMATCH = 1006, "DATA_LOSS", "DAMAGED"
    REPLICA_REGRESSED = 1010, "DATA_LOSS", "DAMAGED"
    # The log was recovered or restored, and one side has not noticed (ADR 65).
    LOG_INCARNATION_MISMATCH = 1011, "FAILED_PRECONDITION", "CONFLICT"


class QuorateError(Exception):
    """The base of every error of ours that a caller may handle."""


class QuorumUsageError(QuorateError):
    """The caller violated our contract; nothing has changed."""


class ConfigError(QuorateError):
    """An unusable configuration. Contains every problem found, not only the first."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class StorageError(QuorateError):
    """A failure of the environment: disk full, I/O error, unreadable file. Names the path."""

    def __init__(self, message: str, path: object = None) -> None:
        super().__init__(message if path is None else f"{path}: {message}")
        self.path = path


class ListenError(QuorateError):
    """Listening on an address failed; the message names the address."""


class DiskFullError(StorageError):
    """A write was refused for lack of space; a partial write was undone."""


class CorruptBatchError(StorageError):
    """Bytes that are no valid record batch. Names file, position and cause."""

    def __init__(self, cause: str, *, path: object = None, position: int = 0) -> None:
        super().__init__(f"corrupt record batch at position {position}: {cause}", path)
        self.cause = cause
        self.position = position


class LogDamagedError(StorageError):
    """Damage of a log segment that a crash cannot explain (ADR 7)."""

    def __init__(self, message: str, *, path: object, position: int, offset: int) -> None:
        super().__init__(f"{message} at position {position} (offset {offset})", path)
        self.position = position
        self.offset = offset


class LogQuarantinedError(StorageError):
    """This replica's log was quarantined: it is wrong. The node stops, with its promises stored."""

    def __init__(self, message: str, *, offset: int) -> None:
        super().__init__(message)
        self.offset = offset
        """First wrong offset, as far as known."""


class SnapshotCorruptError(StorageError):
    """A checkpoint file whose content contradicts its name or its checksums."""


class IdentityError(StorageError):
    """A directory that is not formatted, or was formatted for another node or cluster."""


class IdentityDamagedError(IdentityError):
    """A file that identifies the directory's owner is damaged; it may be this node's."""


class ElectionStateError(StorageError):
    """A ``quorum-state`` file that is unreadable or of a future version."""


class UnknownRecordError(QuorateError):
    """A metadata record of an unknown type or version; replay stops before it."""

    def __init__(self, message: str, *, api_key: int, version: int) -> None:
        super().__init__(message)
        self.api_key = api_key
        self.version = version


class RecordCodecError(QuorateError):
    """Bytes that are no well-formed metadata record."""


class ReplayError(QuorateError):
    """A committed record that contradicts the image: the log or the image is corrupt.

    Names the record, and the offset once the batch is known.
    """

    def __init__(self, message: str, *, offset: int = -1) -> None:
        super().__init__(message if offset < 0 else f"offset {offset}: {message}")
        self.cause = message
        self.offset = offset


class PeerProtocolError(QuorateError):
    """A peer violated the protocol. Ends that stream or call, never this process."""


class CommandError(QuorateError):
    """A client command refused with a protocol code; nothing has changed."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class InvariantViolation(BaseException):
    """An invariant does not hold. The process stops; the numbers describe the state."""


def invariant(condition: object, message: str, **numbers: object) -> None:
    """Stop the process if ``condition`` does not hold.

    Raises:
        InvariantViolation: With ``message`` and every number given.
    """
    if not condition:
        raise violation(message, **numbers)


def cause_of(error: BaseException) -> BaseException | None:
    """Return what an error was raised from.

    Compiled code ignores the ``from`` of a ``raise`` (ADR 64); the handled error is the context.
    """
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def violation(message: str, **numbers: object) -> InvariantViolation:
    """Return the exception of ``invariant``, for hot paths, which test the condition themselves."""
    seen = " ".join(f"{name}={value}" for name, value in numbers.items())
    return InvariantViolation(f"{message} {seen}".rstrip())

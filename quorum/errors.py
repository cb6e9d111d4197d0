"""Errors and protocol codes: what can go wrong, under one name each.

Two forms, never mixed. A *refusal* between peers is a value: an ``ErrorCode`` in a response.
A *failure* is an exception below ``QuorateError``. ``InvariantViolation`` is neither: it means
that we are wrong, derives from ``BaseException`` so that nothing swallows it, and ends the
process.
"""

from __future__ import annotations

from enum import IntEnum


class ErrorCode(IntEnum):
    """Protocol error codes with Kafka's numbers; the text form is the member's name."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    MESSAGE_TOO_LARGE = 10
    INVALID_TOPIC = 17
    CLUSTER_AUTHORIZATION_FAILED = 31
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    UNKNOWN_PRODUCER_ID = 59
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    NO_REASSIGNMENT_IN_PROGRESS = 85
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    INVALID_REGISTRATION = 119
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    CONTROLLER_ID_NOT_REGISTERED = 136
    # Ours, outside Kafka's range.
    OUTCOME_UNKNOWN = 1001
    RESOURCE_EXHAUSTED = 1002
    QUEUE_FULL = 1003
    PRODUCER_WINDOW_EXCEEDED = 1004
    VOTER_REMOVED = 1005
    DIGEST_MISMATCH = 1006
    REPLICA_REGRESSED = 1010


RETRIABLE_CODES = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.OUTCOME_UNKNOWN,
        ErrorCode.QUEUE_FULL,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.INELIGIBLE_REPLICA,
    }
)


class QuorateError(Exception):
    """The base of every error of ours that a caller may handle.

    ``retriable`` says whether the same call can succeed later without a change by the caller.
    """

    retriable = False


class QuorumUsageError(QuorateError):
    """Our caller misused us; nothing has changed."""


class ConfigError(QuorateError):
    """A configuration that cannot be used. Carries every problem found, not only the first."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class StorageError(QuorateError):
    """The environment failed us: disk full, I/O error, unreadable file. Names the path."""

    def __init__(self, message: str, path: object = None) -> None:
        super().__init__(message if path is None else f"{path}: {message}")
        self.path = path


class ListenError(QuorateError):
    """An address cannot be listened on; the message names it."""


class DiskFullError(StorageError):
    """A write was refused for lack of space; what was written of it has been taken back."""

    retriable = True


class CorruptBatchError(StorageError):
    """Bytes that are not a valid record batch. Names file, position and cause."""

    def __init__(self, cause: str, *, path: object = None, position: int = 0) -> None:
        super().__init__(f"corrupt record batch at position {position}: {cause}", path)
        self.cause = cause
        self.position = position


class LogDamagedError(StorageError):
    """A log segment is damaged somewhere that a crash cannot explain (ADR 7)."""

    def __init__(self, message: str, *, path: object, position: int, offset: int) -> None:
        super().__init__(f"{message} at position {position} (offset {offset})", path)
        self.position = position
        self.offset = offset


class LogQuarantinedError(StorageError):
    """This replica's log is not what it should be; it stops, having stored what binds it."""

    def __init__(self, message: str, *, offset: int) -> None:
        super().__init__(message)
        self.offset = offset
        """First offset that is wrong, as far as known."""


class SnapshotCorruptError(StorageError):
    """A checkpoint file whose content is not what its name and checksums promise."""


class IdentityError(StorageError):
    """A directory that is not formatted, or was formatted for another node or cluster."""


class IdentityDamagedError(IdentityError):
    """A file that says whose directory this is cannot be relied on: damaged, not another one's."""


class ElectionStateError(StorageError):
    """A ``quorum-state`` file that cannot be read or is of a future version."""


class UnknownRecordError(QuorateError):
    """A metadata record of a type or version this release does not know; replay stops before it."""

    def __init__(self, message: str, *, api_key: int, version: int) -> None:
        super().__init__(message)
        self.api_key = api_key
        self.version = version


class RecordCodecError(QuorateError):
    """Bytes that are not a well-formed metadata record."""


class ReplayError(QuorateError):
    """A committed record that contradicts the image: the log or the image is corrupt.

    Names the record, and the offset once the batch is known.
    """

    def __init__(self, message: str, *, offset: int = -1) -> None:
        super().__init__(message if offset < 0 else f"offset {offset}: {message}")
        self.cause = message
        self.offset = offset


class PeerProtocolError(QuorateError):
    """A peer broke the protocol. Ends that conversation, never this process."""


class CommandError(QuorateError):
    """A client command refused with a protocol code; nothing has changed."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class InvariantViolation(BaseException):
    """Something that must hold does not. The process stops; the numbers say what was seen."""


def invariant(condition: object, message: str, **numbers: object) -> None:
    """Stop the process when ``condition`` does not hold.

    Raises:
        InvariantViolation: With ``message`` and every number given.
    """
    if not condition:
        seen = " ".join(f"{name}={value}" for name, value in numbers.items())
        raise InvariantViolation(f"{message} {seen}".rstrip())

"""The error codes that each client method may return, and the event for each refusal sent.

A refusal is the status of a call or stream (the reason of its ``ErrorInfo``; ``errors.py`` has the
gRPC status of each code), the answer to one command, or a code in one part of a successful answer.

See: docs/reference/error-codes.md, "What a service refuses".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from quorum.answered import Form, Refusal, Service, notify
from quorum.core.contract.local_events import AddVoter, RemoveVoter, TransferLeadership, UpdateVoter
from quorum.core.messages.refusals import Codes
from quorum.errors import ErrorCode as Code

_NONE: Codes = frozenset()


@dataclass(frozen=True, slots=True)
class Refusals:
    """Error codes of one method, by how they arrive."""

    statuses: Codes
    """Codes that end the call or stream."""
    answers: Codes = _NONE
    """Codes that answer one command; the stream stays open."""
    parts: Codes = _NONE
    """Codes of one topic, resource or partition in a successful answer."""


_TOPIC_DENIED: Codes = frozenset({Code.TOPIC_AUTHORIZATION_FAILED})
_DENIED: Codes = frozenset({Code.CLUSTER_AUTHORIZATION_FAILED, Code.SASL_AUTHENTICATION_FAILED})
"""No role of the caller may call the method, or ACLs do not allow it on the cluster; or the caller
has not proved who it is."""
_STREAM: Codes = _DENIED | frozenset(
    {
        Code.INVALID_REQUEST,
        Code.MESSAGE_TOO_LARGE,
        Code.BROKER_NOT_AVAILABLE,
        Code.RESOURCE_EXHAUSTED,
        Code.REQUEST_TIMED_OUT,
    }
)
_CALL: Codes = _STREAM
_CHANGE: Codes = _CALL | {Code.OUTCOME_UNKNOWN}
_READ: Codes = _CALL | {Code.NOT_LEADER_OR_FOLLOWER, Code.OFFSET_NOT_AVAILABLE}
_EPOCH: Codes = frozenset({Code.FENCED_LEADER_EPOCH, Code.UNKNOWN_LEADER_EPOCH})
_POSITION: Codes = frozenset(
    {Code.UNKNOWN_LEADER_EPOCH, Code.OFFSET_NOT_AVAILABLE, Code.OFFSET_OUT_OF_RANGE}
)
_FORMER: Codes = frozenset({Code.LOG_INCARNATION_MISMATCH})
"""The caller has met a newer incarnation of the log than this node's, or follows another one."""
_DISK: Codes = frozenset({Code.CORRUPT_MESSAGE, Code.UNKNOWN_SERVER_ERROR})

COMMAND_CODES: Codes = frozenset(
    {
        # By the number of its producer.
        Code.UNKNOWN_PRODUCER_ID,
        Code.INVALID_PRODUCER_EPOCH,
        Code.INVALID_PRODUCER_ID_MAPPING,
        Code.OUT_OF_ORDER_SEQUENCE_NUMBER,
        Code.DUPLICATE_SEQUENCE_NUMBER,
        Code.PRODUCER_WINDOW_EXCEEDED,
        # By who asks (ACLs).
        Code.CLUSTER_AUTHORIZATION_FAILED,
        Code.TOPIC_AUTHORIZATION_FAILED,
        Code.GROUP_AUTHORIZATION_FAILED,
        Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        # By what it asks for.
        Code.INVALID_REQUEST,
        Code.POLICY_VIOLATION,
        Code.MESSAGE_TOO_LARGE,
        Code.UNKNOWN_TOPIC_OR_PARTITION,
        Code.UNKNOWN_TOPIC_ID,
        Code.INCONSISTENT_TOPIC_ID,
        Code.INVALID_TOPIC,
        Code.TOPIC_ALREADY_EXISTS,
        Code.INVALID_PARTITIONS,
        Code.INVALID_REPLICATION_FACTOR,
        Code.INVALID_REPLICA_ASSIGNMENT,
        Code.INVALID_CONFIG,
        Code.INVALID_UPDATE_VERSION,
        Code.FEATURE_UPDATE_FAILED,
        Code.UNSUPPORTED_VERSION,
        Code.UNSUPPORTED_SASL_MECHANISM,
        Code.UNACCEPTABLE_CREDENTIAL,
        Code.RESOURCE_NOT_FOUND,
        Code.INCONSISTENT_CLUSTER_ID,
        Code.INVALID_REGISTRATION,
        Code.DUPLICATE_BROKER_REGISTRATION,
        Code.BROKER_ID_NOT_REGISTERED,
        Code.STALE_BROKER_EPOCH,
        Code.LOG_INCARNATION_MISMATCH,
        Code.INVALID_TRANSACTION_TIMEOUT,
        Code.CONCURRENT_TRANSACTIONS,
        Code.UNKNOWN_SERVER_ERROR,
        # By where and when it came.
        Code.NOT_LEADER_OR_FOLLOWER,
        Code.RESOURCE_EXHAUSTED,
        Code.OUTCOME_UNKNOWN,
    }
)
"""The codes with which the controller may refuse a command."""

_RESULT_CODES: Codes = frozenset(
    {
        Code.UNKNOWN_TOPIC_ID,
        Code.UNKNOWN_TOPIC_OR_PARTITION,
        Code.NOT_CONTROLLER,
        Code.FENCED_LEADER_EPOCH,
        Code.INVALID_UPDATE_VERSION,
        Code.INVALID_REQUEST,
        Code.INELIGIBLE_REPLICA,
        Code.NEW_LEADER_ELECTED,
        Code.PREFERRED_LEADER_NOT_AVAILABLE,
        Code.BROKER_NOT_AVAILABLE,
    }
)

HEALTH_AND_REFLECTION = "HealthAndReflection"
"""Stands for every method of the gRPC services of other packages (``foreign.py``)."""

ANSWERS: Mapping[str, Refusals] = {
    "Write": Refusals(_CHANGE | COMMAND_CODES, parts=_RESULT_CODES),
    "WriteStream": Refusals(
        _STREAM | _FORMER | {Code.NOT_CONTROLLER}, COMMAND_CODES | {Code.QUEUE_FULL}, _RESULT_CODES
    ),
    "FetchLog": Refusals(_CALL | _EPOCH | _POSITION | _FORMER | _DISK | _TOPIC_DENIED),
    "ListOffsets": Refusals(
        _CALL
        | _FORMER
        | _EPOCH
        | _DISK
        | _TOPIC_DENIED
        | {Code.NOT_LEADER_OR_FOLLOWER, Code.OFFSET_NOT_AVAILABLE}
    ),
    "OffsetForLeaderEpoch": Refusals(
        _CALL | _FORMER | _EPOCH | _TOPIC_DENIED | {Code.NOT_LEADER_OR_FOLLOWER}
    ),
    "Watch": Refusals(_STREAM | _POSITION | _FORMER | _DISK | _TOPIC_DENIED),
    "ListTopics": Refusals(_READ),
    "DescribeTopics": Refusals(
        _READ,
        parts=frozenset({Code.UNKNOWN_TOPIC_OR_PARTITION, Code.UNKNOWN_TOPIC_ID}) | _TOPIC_DENIED,
    ),
    "DescribeConfigs": Refusals(
        _READ,
        parts=frozenset({Code.UNKNOWN_TOPIC_OR_PARTITION, Code.GROUP_AUTHORIZATION_FAILED})
        | _TOPIC_DENIED
        | {Code.CLUSTER_AUTHORIZATION_FAILED},
    ),
    "FetchPositions": Refusals(_READ | _FORMER, parts=frozenset({Code.GROUP_AUTHORIZATION_FAILED})),
    "Authenticate": Refusals(
        (_STREAM - {Code.CLUSTER_AUTHORIZATION_FAILED}) | {Code.UNSUPPORTED_SASL_MECHANISM}
    ),
    "ReadStream": Refusals(_STREAM, _READ - _DENIED - {Code.BROKER_NOT_AVAILABLE}),
    "DescribeCluster": Refusals(_READ),
    "DescribeQuorum": Refusals(_CALL),
    "DescribeFeatures": Refusals(_READ),
    "DescribeAcls": Refusals(_READ),
    "DescribeUserScramCredentials": Refusals(_READ, parts=frozenset({Code.RESOURCE_NOT_FOUND})),
    "DescribeImage": Refusals(_READ),
    "DeleteRecords": Refusals(
        _CALL | _TOPIC_DENIED | {Code.POLICY_VIOLATION, Code.UNKNOWN_TOPIC_OR_PARTITION}
    ),
    "CreateSnapshot": Refusals(_CHANGE | {Code.UNKNOWN_SERVER_ERROR}),
    "TransferLeadership": Refusals(
        _CHANGE | _EPOCH | TransferLeadership.refusals | {Code.NEW_LEADER_ELECTED}
    ),
    "AddVoter": Refusals(_CHANGE | AddVoter.refusals),
    "RemoveVoter": Refusals(_CHANGE | RemoveVoter.refusals),
    "UpdateVoter": Refusals(_CHANGE | _EPOCH | UpdateVoter.refusals),
    HEALTH_AND_REFLECTION: Refusals(
        frozenset(
            {
                Code.CLUSTER_AUTHORIZATION_FAILED,
                Code.SASL_AUTHENTICATION_FAILED,
                Code.INVALID_REQUEST,
                Code.MESSAGE_TOO_LARGE,
                Code.REQUEST_TIMED_OUT,
                Code.RESOURCE_EXHAUSTED,
            }
        )
    ),
}
"""By method name; the names of MetadataService and AdminService are disjoint."""

_NAMES = {int(code): code.name for code in Code}
"""A result in the log, written by a later release, may contain codes unknown here."""


def name_refusal(method: str, form: Form, code: int) -> None:
    """Notify listeners of a refusal that is being sent; code 0 means no refusal."""
    if code:
        notify(Refusal(Service.CLIENTS, method, form, _NAMES.get(code, str(code))))

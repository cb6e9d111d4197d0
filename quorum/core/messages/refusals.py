"""Error codes that several requests may get as an answer, besides NONE.

Each request declares its own set in ``refusals``, and for a relay in ``relay_refusals``. The
handlers choose the code. All scenarios together check that each code occurs and that the core
answers with no other. The transport adds ``OWN_CODES`` (``quorum/transport/answers.py``).

See: docs/reference/handlers.md, "Handlers".
"""

from __future__ import annotations

from typing import Final, TypeAlias

from quorum.errors import ErrorCode

Codes: TypeAlias = frozenset[ErrorCode]

MALFORMED: Final[Codes] = frozenset({ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.INVALID_REQUEST})
OF_VOTERS: Final = MALFORMED | {ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.INVALID_VOTER_KEY}
OF_LEADERS: Final = OF_VOTERS | {ErrorCode.INELIGIBLE_REPLICA, ErrorCode.UNKNOWN_LEADER_EPOCH}
TO_LEADER: Final = MALFORMED | {
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
OF_RELAYS: Final = TO_LEADER | {
    ErrorCode.INELIGIBLE_REPLICA,
    ErrorCode.RESOURCE_EXHAUSTED,
    ErrorCode.SNAPSHOT_NOT_FOUND,
}
TO_OPERATORS: Final[Codes] = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.BROKER_NOT_AVAILABLE,
    }
)
ADDING: Final[Codes] = frozenset(
    {
        ErrorCode.DUPLICATE_VOTER,
        ErrorCode.VOTER_REMOVED,
        ErrorCode.INELIGIBLE_REPLICA,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.LOG_INCARNATION_MISMATCH,
    }
)
REMOVING: Final[Codes] = frozenset({ErrorCode.VOTER_NOT_FOUND, ErrorCode.RESOURCE_EXHAUSTED})
UPDATING: Final[Codes] = frozenset(
    {
        ErrorCode.VOTER_NOT_FOUND,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.LOG_INCARNATION_MISMATCH,
    }
)
OF_CHANGES: Final = TO_LEADER | TO_OPERATORS
OF_OPERATORS: Final = TO_OPERATORS | {ErrorCode.INVALID_REQUEST}

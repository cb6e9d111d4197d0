"""Which request is answered with which error codes, besides NONE: the whole table.

Data only; ``refusals`` and the conversations decide. That each row is real, and that the core
never answers with another code, is counted over all scenarios. A relay stands in for its leader in
two requests and has refusals of its own. What a replica asks for its own voter entry, an operator
may ask for any. What the transport adds is in ``quorum/transport/answers.py``.

See: docs/reference/handlers.md, "Handlers".
"""

from __future__ import annotations

from collections.abc import Mapping

from quorum.core.contract.local_events import AddVoter, RemoveVoter, TransferLeadership, UpdateVoter
from quorum.core.messages.bootstrap_messages import BootstrapRequest
from quorum.core.messages.chain_messages import ChainDigestRequest
from quorum.core.messages.epoch_messages import BeginQuorumEpochRequest, EndQuorumEpochRequest
from quorum.core.messages.fetch_messages import FetchRequest
from quorum.core.messages.message_types import Request
from quorum.core.messages.read_messages import ReadPositionRequest
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest
from quorum.core.messages.vote_messages import VoteRequest
from quorum.core.messages.voter_messages import (
    AddVoterRequest,
    RemoveVoterRequest,
    UpdateVoterRequest,
)
from quorum.errors import ErrorCode

Codes = frozenset[ErrorCode]

_MALFORMED: Codes = frozenset({ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.INVALID_REQUEST})
_OF_VOTERS = _MALFORMED | {ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.INVALID_VOTER_KEY}
_OF_LEADERS = _OF_VOTERS | {ErrorCode.INELIGIBLE_REPLICA, ErrorCode.UNKNOWN_LEADER_EPOCH}
_TO_LEADER = _MALFORMED | {
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
_OF_CHANGES = _TO_LEADER | {ErrorCode.REQUEST_TIMED_OUT, ErrorCode.BROKER_NOT_AVAILABLE}
_OF_RELAYS = {ErrorCode.INELIGIBLE_REPLICA, ErrorCode.RESOURCE_EXHAUSTED}

ANSWERS: Mapping[type[Request], Codes] = {
    VoteRequest: _OF_VOTERS,
    BeginQuorumEpochRequest: _OF_LEADERS,
    EndQuorumEpochRequest: _OF_LEADERS,
    BootstrapRequest: _OF_VOTERS | {ErrorCode.INELIGIBLE_REPLICA},
    FetchRequest: _TO_LEADER
    | {
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.SNAPSHOT_NOT_FOUND,
        ErrorCode.DIGEST_MISMATCH,
        ErrorCode.REPLICA_REGRESSED,
    },
    FetchSnapshotRequest: _TO_LEADER
    | {ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE},
    ReadPositionRequest: _TO_LEADER | {ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.QUEUE_FULL},
    ChainDigestRequest: _MALFORMED,
    AddVoterRequest: _OF_CHANGES
    | {
        ErrorCode.DUPLICATE_VOTER,
        ErrorCode.VOTER_REMOVED,
        ErrorCode.INELIGIBLE_REPLICA,
        ErrorCode.UNSUPPORTED_VERSION,
    },
    RemoveVoterRequest: _OF_CHANGES | {ErrorCode.VOTER_NOT_FOUND, ErrorCode.RESOURCE_EXHAUSTED},
    UpdateVoterRequest: _OF_CHANGES | {ErrorCode.VOTER_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION},
}
"""Of a voter, or of any replica that is no relay."""

RELAY_ANSWERS: Mapping[type[Request], Codes] = {
    FetchRequest: _TO_LEADER
    | _OF_RELAYS
    | {
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.SNAPSHOT_NOT_FOUND,
        ErrorCode.DIGEST_MISMATCH,
    },
    FetchSnapshotRequest: _TO_LEADER
    | _OF_RELAYS
    | {ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE},
}
"""Of an observer that serves others."""

_TO_OPERATORS = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.BROKER_NOT_AVAILABLE,
    }
)
_CHANGES = _TO_OPERATORS | {ErrorCode.INVALID_REQUEST}

OPERATOR_ANSWERS: Mapping[type[object], Codes] = {
    TransferLeadership: _TO_OPERATORS
    | {
        ErrorCode.VOTER_NOT_FOUND,
        ErrorCode.INELIGIBLE_REPLICA,
        ErrorCode.INVALID_VOTER_KEY,
    },
    AddVoter: _CHANGES
    | {
        ErrorCode.DUPLICATE_VOTER,
        ErrorCode.VOTER_REMOVED,
        ErrorCode.INELIGIBLE_REPLICA,
        ErrorCode.UNSUPPORTED_VERSION,
    },
    RemoveVoter: _CHANGES | {ErrorCode.VOTER_NOT_FOUND, ErrorCode.RESOURCE_EXHAUSTED},
    UpdateVoter: _CHANGES | {ErrorCode.VOTER_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION},
}
"""Of a node whose operator asks it by ``on_local_event``."""

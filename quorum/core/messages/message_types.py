"""All messages between replicas: one request and one response type per RPC.

Each exchange has its own file (``*_messages``); this module has the unions, and the envelope of a
received request. The messages are plain values, without wire format (``quorum.transport.codec``) or
rules. Sentinels follow Kafka: -1 for an unknown id, offset or epoch. Every request has the
``request_id`` that its sender chose, and every response repeats it, so that a response without an
open request is recognised and dropped.

See: KIP-595, KIP-630, KIP-853 (field meanings), docs/reference/protocol.md.
"""

from __future__ import annotations

from typing import Final, TypeAlias, get_args

from quorum.core.messages.bootstrap_messages import BootstrapRequest, BootstrapResponse
from quorum.core.messages.chain_messages import ChainDigestRequest, ChainDigestResponse
from quorum.core.messages.epoch_messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
)
from quorum.core.messages.fetch_messages import (
    FetchDecision,
    FetchRequest,
    FetchResponse,
    ReceivedFetchRequest,
    ReceivedFetchResponse,
)
from quorum.core.messages.read_messages import ReadPositionRequest, ReadPositionResponse
from quorum.core.messages.snapshot_messages import (
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    ServeChunk,
)
from quorum.core.messages.vote_messages import VoteRequest, VoteResponse
from quorum.core.messages.voter_messages import (
    AddVoterRequest,
    RemoveVoterRequest,
    UpdateVoterRequest,
    VoterChangeResponse,
)
from quorum.values import value

Request: TypeAlias = (
    VoteRequest
    | BeginQuorumEpochRequest
    | EndQuorumEpochRequest
    | BootstrapRequest
    | FetchRequest
    | FetchSnapshotRequest
    | ReadPositionRequest
    | ChainDigestRequest
    | UpdateVoterRequest
    | AddVoterRequest
    | RemoveVoterRequest
)
REQUESTS: Final[tuple[type[Request], ...]] = get_args(Request)
RELAYED: Final = (FetchRequest, FetchSnapshotRequest)
"""Requests that a relay answers in place of its leader."""
Response: TypeAlias = (
    VoteResponse
    | BeginQuorumEpochResponse
    | EndQuorumEpochResponse
    | BootstrapResponse
    | FetchResponse
    | FetchSnapshotResponse
    | ReadPositionResponse
    | ChainDigestResponse
    | VoterChangeResponse
)
Message: TypeAlias = Request | Response
"""Messages as sent."""
Outgoing: TypeAlias = Message | FetchDecision | ServeChunk
"""Output of the core: a message, or a decision from which the runtime builds one."""


@value
class ReceivedRequest:
    """A request, and what the receiving transport knows about its sender."""

    request: Request
    is_proven: bool
    """Whether the sender is proven to be the replica that the request names (ADR 52)."""


Received: TypeAlias = ReceivedRequest | Response
"""What the transport passes on."""
Incoming: TypeAlias = Received | ReceivedFetchRequest | ReceivedFetchResponse
"""Input of the core; a Fetch message has the type of its last stage."""

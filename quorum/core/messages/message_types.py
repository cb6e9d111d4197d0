"""Everything replicas say to each other: one request and one response type per RPC.

Each conversation has a file of its own (``*_messages``); here are only their unions. They are plain
values, no bytes on the wire (``quorum.transport.codec``) and no rules (the conversations).
Sentinels follow Kafka: -1 for an unknown id, offset or epoch. Every request carries the
``request_id`` its sender chose and every response repeats it, so that a response to a request
never sent is recognised and dropped.

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
"""What a relay answers in its leader's place."""
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
"""What travels."""
Outgoing: TypeAlias = Message | FetchDecision | ServeChunk
"""What the core hands to its runtime: a message, or the decision that the runtime makes one of."""
Incoming: TypeAlias = Message | ReceivedFetchRequest | ReceivedFetchResponse
"""What the core takes from its runtime; never a bare message of Fetch."""

"""Which conversation takes which message. A table and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quorum.core import (
    chain_digests,
    dispute,
    election,
    following,
    founding,
    leadership,
    own_entry,
    read_confirmation,
    read_forwarding,
    relay_serving,
    snapshot_transfer,
    succession,
    voting,
)
from quorum.core.chain_messages import ChainDigestRequest, ChainDigestResponse
from quorum.core.epoch_messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
)
from quorum.core.fetch_messages import FetchRequest, FetchResponse
from quorum.core.founding_messages import FoundingRequest, FoundingResponse
from quorum.core.read_messages import ReadPositionRequest, ReadPositionResponse
from quorum.core.snapshot_messages import FetchSnapshotRequest, FetchSnapshotResponse
from quorum.core.state import CoreState
from quorum.core.vote_messages import VoteRequest, VoteResponse
from quorum.core.voter_messages import (
    AddVoterRequest,
    RemoveVoterRequest,
    UpdateVoterRequest,
    VoterChangeResponse,
)
from quorum.types import NodeId

Handler = Callable[[CoreState, NodeId, Any], None]
HANDLERS: dict[type[Any], Handler] = {
    FoundingRequest: founding.on_founding_request,
    FoundingResponse: founding.on_founding_response,
    VoteRequest: voting.on_vote_request,
    VoteResponse: election.on_vote_response,
    BeginQuorumEpochRequest: leadership.on_begin_request,
    BeginQuorumEpochResponse: leadership.on_begin_response,
    EndQuorumEpochRequest: succession.on_end_request,
    EndQuorumEpochResponse: succession.on_end_response,
    FetchRequest: relay_serving.on_fetch,
    FetchResponse: following.on_fetch_response,
    FetchSnapshotRequest: relay_serving.on_fetch_snapshot,
    UpdateVoterRequest: own_entry.on_voter_request,
    AddVoterRequest: own_entry.on_voter_request,
    RemoveVoterRequest: own_entry.on_voter_request,
    VoterChangeResponse: own_entry.on_voter_change_response,
    FetchSnapshotResponse: snapshot_transfer.on_fetch_snapshot_response,
    ReadPositionRequest: read_confirmation.on_read_position,
    ReadPositionResponse: read_forwarding.on_read_position_response,
    ChainDigestRequest: chain_digests.on_chain_digest_request,
    ChainDigestResponse: dispute.on_chain_digest_response,
}

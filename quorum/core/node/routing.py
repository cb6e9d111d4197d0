"""The handler of each message type: one table, and others for requests that need more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quorum.core.contract.reasons import IgnoreReason
from quorum.core.election import bootstrapping, campaign, voting
from quorum.core.following import fetching, snapshot_transfer
from quorum.core.integrity import chain_digests, divergence_resolution
from quorum.core.leadership import leadership_term, resignation
from quorum.core.membership import self_registration
from quorum.core.messages.bootstrap_messages import BootstrapRequest, BootstrapResponse
from quorum.core.messages.chain_messages import ChainDigestRequest, ChainDigestResponse
from quorum.core.messages.epoch_messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
)
from quorum.core.messages.fetch_messages import ReceivedFetchRequest, ReceivedFetchResponse
from quorum.core.messages.message_types import Incoming, ReceivedRequest
from quorum.core.messages.read_messages import ReadPositionRequest, ReadPositionResponse
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest, FetchSnapshotResponse
from quorum.core.messages.vote_messages import VoteRequest, VoteResponse
from quorum.core.messages.voter_messages import (
    AddVoterRequest,
    RemoveVoterRequest,
    UpdateVoterRequest,
    VoterChangeResponse,
)
from quorum.core.protocol.refusals import ignore
from quorum.core.replication import (
    fetch_serving,
    read_confirmation,
    read_forwarding,
    relay_serving,
    snapshot_serving,
)
from quorum.core.state.core_state import CoreState
from quorum.core.state.relay_table import Relay
from quorum.types import NodeId

Handler = Callable[[CoreState, NodeId, Any], None]
HANDLERS: dict[type[Any], Handler] = {
    BootstrapRequest: bootstrapping.on_bootstrap_request,
    BootstrapResponse: bootstrapping.on_bootstrap_response,
    VoteRequest: voting.on_vote_request,
    VoteResponse: campaign.on_vote_response,
    BeginQuorumEpochResponse: leadership_term.on_begin_response,
    EndQuorumEpochResponse: resignation.on_end_response,
    ReceivedFetchRequest: fetch_serving.on_fetch,
    ReceivedFetchResponse: fetching.on_fetch_response,
    FetchSnapshotRequest: snapshot_serving.on_fetch_snapshot,
    VoterChangeResponse: self_registration.on_voter_change_response,
    FetchSnapshotResponse: snapshot_transfer.on_fetch_snapshot_response,
    ReadPositionRequest: read_confirmation.on_read_position,
    ReadPositionResponse: read_forwarding.on_read_position_response,
    ChainDigestRequest: chain_digests.on_chain_digest_request,
    ChainDigestResponse: divergence_resolution.on_chain_digest_response,
}
PROOF_HANDLERS: dict[type[Any], Callable[..., None]] = {
    BeginQuorumEpochRequest: leadership_term.on_begin_request,
    EndQuorumEpochRequest: resignation.on_end_request,
    UpdateVoterRequest: self_registration.on_voter_request,
    AddVoterRequest: self_registration.on_voter_request,
    RemoveVoterRequest: self_registration.on_voter_request,
}
"""Handlers that also get whether the sender is proven (``is_proven``)."""
RELAY_HANDLERS: dict[type[Any], Callable[[CoreState, Relay, NodeId, Any], None]] = {
    ReceivedFetchRequest: relay_serving.on_fetch,
    FetchSnapshotRequest: relay_serving.on_fetch_snapshot,
}
"""Replaces the leader's handlers on a node that serves as a relay."""


def handle(core: CoreState, sender: NodeId, message: Incoming) -> None:
    """Pass a message to its handler; ignore a message without one. Raises nothing."""
    inner: Any = message
    is_proven = False
    if type(message) is ReceivedRequest:
        inner, is_proven = message.request, message.is_proven
    kind, relay = type(inner), core.relay
    if relay is not None and kind in RELAY_HANDLERS and relay_serving.serves_as_relay(core):
        RELAY_HANDLERS[kind](core, relay, sender, inner)
    elif kind in PROOF_HANDLERS:
        PROOF_HANDLERS[kind](core, sender, inner, is_proven=is_proven)
    elif (handler := HANDLERS.get(kind)) is not None:
        handler(core, sender, inner)
    else:
        ignore(core, sender, inner, IgnoreReason.UNKNOWN_KIND, is_violation=True)

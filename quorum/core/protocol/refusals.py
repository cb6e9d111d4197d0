"""Refusals: one error answer per kind of request, which always names the epoch and the leader.

A refusal changes no state; it only emits an event.
"""

from __future__ import annotations

from typing import assert_never

from quorum.core.contract.events import MessageIgnored, RequestRefused
from quorum.core.contract.reasons import IgnoreReason
from quorum.core.messages.bootstrap_messages import BootstrapRequest, BootstrapResponse
from quorum.core.messages.chain_messages import ChainDigestRequest, ChainDigestResponse
from quorum.core.messages.epoch_messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
)
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.message_types import Incoming, Message, Request, Response
from quorum.core.messages.read_messages import ReadPositionRequest, ReadPositionResponse
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest, FetchSnapshotResponse
from quorum.core.messages.vote_messages import VoteRequest, VoteResponse
from quorum.core.messages.voter_messages import (
    AddVoterRequest,
    RemoveVoterRequest,
    UpdateVoterRequest,
    VoterChangeResponse,
)
from quorum.core.state.core_state import CoreState
from quorum.errors import ErrorCode
from quorum.types import EPOCH_MAX, NodeId, ReplicaKey

OFFSET_MAX = (1 << 63) - 1


def refuse(core: CoreState, sender: NodeId, request: Request, error: ErrorCode) -> None:
    """Answer ``request`` with ``error``."""
    core.event(RequestRefused(sender, type(request).__name__, error))
    core.send(sender, error_response(core, request, error))


def error_response(core: CoreState, request: Request, error: ErrorCode) -> Response:
    """Return the response that answers ``request`` with ``error``, the epoch and the leader."""
    leader_id, epoch, endpoints = core.leader_id, core.epoch, core.answering_endpoints()
    request_id = request.request_id
    match request:
        case VoteRequest():
            return VoteResponse(
                request_id, error, leader_id, epoch, granted=False, leader_endpoints=endpoints
            )
        case BeginQuorumEpochRequest():
            return BeginQuorumEpochResponse(request_id, error, leader_id, epoch, endpoints)
        case EndQuorumEpochRequest():
            return EndQuorumEpochResponse(request_id, error, leader_id, epoch, endpoints)
        case BootstrapRequest():
            return BootstrapResponse(
                request_id, error, leader_id, epoch, leader_endpoints=endpoints
            )
        case FetchRequest():
            return FetchResponse(
                request_id,
                error,
                leader_id,
                epoch,
                log_start_offset=core.log.start.offset,
                leader_endpoints=endpoints,
            )
        case FetchSnapshotRequest():
            return FetchSnapshotResponse(
                request_id,
                error,
                leader_id,
                epoch,
                request.snapshot_id,
                position=request.position,
                leader_endpoints=endpoints,
            )
        case ReadPositionRequest():
            return ReadPositionResponse(
                request_id, error, leader_id, epoch, leader_endpoints=endpoints
            )
        case ChainDigestRequest():
            return ChainDigestResponse(
                request_id, error, leader_id, epoch, leader_endpoints=endpoints
            )
        case UpdateVoterRequest() | AddVoterRequest() | RemoveVoterRequest():
            return VoterChangeResponse(
                request_id, error, leader_id, epoch, leader_endpoints=endpoints
            )
        case _:
            assert_never(request)


def ignore(
    core: CoreState,
    sender: NodeId,
    message: Message | Incoming,
    reason: IgnoreReason,
    detail: str = "",
    *,
    is_violation: bool = False,
) -> None:
    """Drop a message. ``is_violation``: no correct peer would have sent it."""
    core.event(MessageIgnored(sender, type(message).__name__, reason, detail, is_violation))


def has_wrong_cluster(core: CoreState, cluster_id: str) -> bool:
    """Return whether a request was meant for another cluster; an empty id is not checked."""
    return cluster_id != core.cluster_id and cluster_id != ""


def is_addressed_to(core: CoreState, receiver: ReplicaKey) -> bool:
    """Return whether ``receiver`` is this very replica; a negative id matches every replica."""
    return receiver.id < 0 or receiver.matches(core.me)


def refusal_of_voter_request(core: CoreState, epoch: int, author: NodeId) -> ErrorCode | None:
    """Return the error of the check that Vote, BeginQuorumEpoch and EndQuorumEpoch share, or None.

    The author need not be in our voter set, and we need not be: either of us may not have
    seen the newest one yet.
    """
    if author < 0 or author == core.me.id or not 0 <= epoch <= EPOCH_MAX:
        return ErrorCode.INVALID_REQUEST
    if epoch < core.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return None


def refusal_of_leader_request(core: CoreState, epoch: int, *, leads: bool) -> ErrorCode | None:
    """Return the error of the check that Fetch and FetchSnapshot share (320.1), or None."""
    if epoch < core.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > core.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    return None if leads else ErrorCode.NOT_LEADER_OR_FOLLOWER

"""Which requests are refused at once, and what a refusal says."""

from __future__ import annotations

from typing import Any

import pytest

from quorum.core.contract.events import MessageIgnored, RequestRefused
from quorum.core.contract.output import Promise, Send
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
from quorum.core.messages.read_messages import ReadPositionRequest, ReadPositionResponse
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest, FetchSnapshotResponse
from quorum.core.messages.vote_messages import VoteRequest, VoteResponse
from quorum.core.messages.voter_messages import (
    AddVoterRequest,
    RemoveVoterRequest,
    UpdateVoterRequest,
    VoterChangeResponse,
)
from quorum.core.positions.log_view import LogView
from quorum.core.protocol.refusals import (
    EPOCH_MAX,
    error_response,
    has_wrong_cluster,
    ignore,
    is_addressed_to,
    refusal_of_leader_request,
    refusal_of_voter_request,
    refuse,
)
from quorum.core.state.core_state import CoreState
from quorum.errors import ErrorCode
from quorum.types import NO_NODE, ElectionState, Endpoint, OffsetAndEpoch, ReplicaKey, SnapshotId
from tests.support.core_disk import key
from tests.unit.core.node.test_core_deadlines import core_of, follower

EPOCH = 4
LEADER = 2
ERROR = ErrorCode.FENCED_LEADER_EPOCH
HERE = (Endpoint("CONTROLLER", "leader", 9),)


def core() -> CoreState:
    """Node 1 in epoch 4, which follows node 2; its log begins at offset 3."""
    found = core_of(follower())
    found.adopt_election(ElectionState(EPOCH, LEADER))
    found.known_leader.endpoints = HERE
    found.log = LogView(OffsetAndEpoch(3, 1), OffsetAndEpoch(3, 1), ())
    return found


def request(kind: type[Any], **fields: Any) -> Any:
    """A request with an id; no refusal looks at more of it, but for a snapshot and a position."""
    made = object.__new__(kind)
    for name, content in {"request_id": 70, **fields}.items():
        object.__setattr__(made, name, content)
    return made


@pytest.mark.parametrize(
    ("kind", "response"),
    [
        (VoteRequest, VoteResponse(70, ERROR, LEADER, EPOCH, False, leader_endpoints=HERE)),
        (BeginQuorumEpochRequest, BeginQuorumEpochResponse(70, ERROR, LEADER, EPOCH, HERE)),
        (EndQuorumEpochRequest, EndQuorumEpochResponse(70, ERROR, LEADER, EPOCH, HERE)),
        (BootstrapRequest, BootstrapResponse(70, ERROR, LEADER, EPOCH, leader_endpoints=HERE)),
        (
            FetchRequest,
            FetchResponse(70, ERROR, LEADER, EPOCH, log_start_offset=3, leader_endpoints=HERE),
        ),
        (
            ReadPositionRequest,
            ReadPositionResponse(70, ERROR, LEADER, EPOCH, leader_endpoints=HERE),
        ),
        (ChainDigestRequest, ChainDigestResponse(70, ERROR, LEADER, EPOCH, leader_endpoints=HERE)),
        (AddVoterRequest, VoterChangeResponse(70, ERROR, LEADER, EPOCH, leader_endpoints=HERE)),
        (RemoveVoterRequest, VoterChangeResponse(70, ERROR, LEADER, EPOCH, leader_endpoints=HERE)),
        (UpdateVoterRequest, VoterChangeResponse(70, ERROR, LEADER, EPOCH, leader_endpoints=HERE)),
    ],
)
def test_a_refusal_names_the_epoch_and_the_leader(kind: type[Any], response: Any) -> None:
    assert error_response(core(), request(kind), ERROR) == response


def test_a_refused_chunk_names_its_snapshot_and_position() -> None:
    snapshot_id = SnapshotId(5, 4)
    asked = request(FetchSnapshotRequest, snapshot_id=snapshot_id, position=9)
    assert error_response(core(), asked, ERROR) == FetchSnapshotResponse(
        70, ERROR, LEADER, EPOCH, snapshot_id, position=9, leader_endpoints=HERE
    )


def test_what_is_no_request_has_no_answer() -> None:
    response: Any = VoteResponse(70, ERROR, LEADER, EPOCH, granted=False)
    with pytest.raises(AssertionError):
        error_response(core(), response, ERROR)


@pytest.mark.parametrize("is_durable", [False, True])
def test_a_refusal_leaves_once_the_epoch_that_it_names_is_durable(is_durable: bool) -> None:
    found = core()
    found.disk.last_ticket = found.disk.election_ticket = 1
    found.disk.durable_ticket = int(is_durable)
    asked = request(VoteRequest)
    refuse(found, 3, asked, ERROR)
    answer = error_response(found, asked, ERROR)
    assert found.out.events == [RequestRefused(3, "VoteRequest", ERROR)]
    assert found.out.immediate == ([Send(3, answer)] if is_durable else [])
    assert found.out.after_persist == ([] if is_durable else [Promise(1, 3, answer)])


@pytest.mark.parametrize("is_violation", [False, True])
def test_an_ignored_message_is_reported(is_violation: bool) -> None:
    found = core()
    reason = IgnoreReason.NEVER_ASKED
    ignore(found, 3, request(VoteResponse), reason, "detail", is_violation=is_violation)
    assert found.out.events == [MessageIgnored(3, "VoteResponse", reason, "detail", is_violation)]
    assert not found.out.immediate


@pytest.mark.parametrize(
    ("cluster_id", "is_wrong"), [("cluster", False), ("other", True), ("", False)]
)
def test_a_request_without_a_cluster_id_is_for_every_cluster(
    cluster_id: str, is_wrong: bool
) -> None:
    assert has_wrong_cluster(core(), cluster_id) is is_wrong


@pytest.mark.parametrize(
    ("me", "receiver", "is_meant"),
    [
        (key(1), key(1), True),
        (key(1), key(2), False),
        (key(1), ReplicaKey(1, key(2).directory_id), False),
        (key(1), ReplicaKey(NO_NODE), True),
        (key(1), ReplicaKey(NO_NODE, key(2).directory_id), True),
        (key(1), key(0), False),
        (key(0), key(0), True),
    ],
)
def test_a_request_for_nobody_in_particular_is_for_every_replica(
    me: ReplicaKey, receiver: ReplicaKey, is_meant: bool
) -> None:
    found = core()
    found.me = me
    assert is_addressed_to(found, receiver) is is_meant


@pytest.mark.parametrize(
    ("epoch", "author", "error"),
    [
        (EPOCH, 2, None),
        (EPOCH, 0, None),
        (EPOCH + 1, 2, None),
        (EPOCH_MAX, 2, None),
        (EPOCH_MAX + 1, 2, ErrorCode.INVALID_REQUEST),
        (EPOCH, -1, ErrorCode.INVALID_REQUEST),
        (EPOCH, 1, ErrorCode.INVALID_REQUEST),
        (EPOCH - 1, 2, ErrorCode.FENCED_LEADER_EPOCH),
        (0, 2, ErrorCode.FENCED_LEADER_EPOCH),
        (-1, 2, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_request_of_a_campaign_or_a_leader_has_an_author_and_a_present_epoch(
    epoch: int, author: int, error: ErrorCode | None
) -> None:
    assert refusal_of_voter_request(core(), epoch, author) == error


@pytest.mark.parametrize("leads", [False, True])
@pytest.mark.parametrize(
    ("epoch", "error"),
    [
        (EPOCH - 1, ErrorCode.FENCED_LEADER_EPOCH),
        (EPOCH, None),
        (EPOCH + 1, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_a_request_to_a_leader_is_of_its_epoch(
    epoch: int, error: ErrorCode | None, leads: bool
) -> None:
    otherwise = None if leads else ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert refusal_of_leader_request(core(), epoch, leads=leads) == (error or otherwise)

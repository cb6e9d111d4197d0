"""EndQuorumEpoch on both sides, case by case: what a resigned leader sends, who agrees to it."""

from __future__ import annotations

from typing import Any

import pytest

from quorum.core.contract.events import MessageIgnored, RequestRefused, TransferEnded
from quorum.core.contract.reasons import IgnoreReason
from quorum.core.leadership.resignation import (
    on_end_request,
    on_end_response,
    poll_resigned,
    successor_backoff_ms,
)
from quorum.core.messages.epoch_messages import EndQuorumEpochRequest, EndQuorumEpochResponse
from quorum.core.protocol.role_transitions import resigned_role
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.peer_requests import PeerRequest, Purpose
from quorum.core.state.roles import (
    Candidate,
    Follower,
    Prospective,
    Resigned,
    Transfer,
    Unattached,
)
from quorum.core.state.timers import Timer
from quorum.errors import ErrorCode
from quorum.types import NO_NODE, ElectionState, NodeId, ReplicaKey
from tests.support.bare_core import (
    CLUSTER,
    EPOCH,
    LEADER,
    NOW_MS,
    core_of,
    follower,
    leading,
    reported,
    sent_of,
)
from tests.support.core_disk import key, voter

SENDER = 9
ME, OTHER = key(1), key(3)
CONTACT = {"has_fetched": True, "fetch_deadline_ms": NOW_MS + 1}
INELIGIBLE = ErrorCode.INELIGIBLE_REPLICA
NO_VOTER_KEY = ErrorCode.INVALID_VOTER_KEY


# The pauses of the successors.


@pytest.mark.parametrize(
    ("successors", "expected"),
    [
        ((1, 2, 3, 4), 0),
        ((2, 1, 3, 4), 125),
        ((2, 3, 1, 4), 250),
        ((2, 3, 4, 1), 500),
        ((2, 3, 4), 1_000),
        ((), 1_000),
        ((1,), 0),
        ((2, 1), 500),
    ],
)
def test_the_pause_grows_with_the_place_among_the_successors(
    successors: tuple[NodeId, ...], expected: int
) -> None:
    assert successor_backoff_ms(tuple(map(key, successors)), ME, 1_000) == expected


def test_a_successor_is_known_by_its_disk() -> None:
    keys = (ReplicaKey(1, bytes(15) + b"x"), ReplicaKey(1))
    assert successor_backoff_ms(keys, ME, 1_000) == 500


# The side that resigns.


def resigned(**fields: Any) -> tuple[CoreState, Resigned]:
    """Node 1 has resigned; an EndQuorumEpoch to node 2 waits for its answer."""
    core, _ = leading()
    role = core.role = resigned_role(core, (key(3), key(2)))
    for name, content in {"election_deadline_ms": NOW_MS + 1, **fields}.items():
        setattr(role, name, content)
    request = role.end_epochs[2]
    core.requests.open(request, 5)
    request.due_ms = NOW_MS + 50
    return core, role


@pytest.mark.parametrize(
    ("left_ms", "is_shutting_down", "leaves"),
    [(0, False, True), (1, False, False), (0, True, False)],
)
def test_a_resigned_leader_leaves_its_epoch_in_time(
    left_ms: int, is_shutting_down: bool, leaves: bool
) -> None:
    core, _ = resigned(election_deadline_ms=NOW_MS + left_ms)
    core.process.is_shutting_down = is_shutting_down
    poll_resigned(core, core.role)  # type: ignore[arg-type]
    assert isinstance(core.role, Unattached if leaves else Resigned)
    assert core.epoch == EPOCH + leaves
    assert core.timers_fired[Timer.RESIGNATION] == leaves
    assert len(sent_of(core, EndQuorumEpochRequest)) == (not leaves)


def test_each_voter_is_told_who_should_campaign() -> None:
    """Node 2 has been told; its answer is not overdue yet."""
    core, role = resigned()
    poll_resigned(core, role)
    ((to, request),) = sent_of(core, EndQuorumEpochRequest)
    assert to == 3
    assert request == EndQuorumEpochRequest(
        role.end_epochs[3].request_id,
        CLUSTER,
        ME,
        EPOCH,
        (key(3), key(2)),
        voter(1).endpoints,
    )
    assert not request.campaign_now


def answer(core: CoreState, **fields: Any) -> None:
    given = {"error": ErrorCode.NONE, "leader_id": 1, "epoch": EPOCH, **fields}
    on_end_response(core, 2, EndQuorumEpochResponse(5, **given))


@pytest.mark.parametrize(
    ("fields", "agrees"),
    [
        ({}, True),
        ({"leader_id": NO_NODE}, True),
        ({"error": INELIGIBLE}, False),
        ({"epoch": EPOCH - 1}, False),
        ({"leader_id": 3}, False),
    ],
)
def test_a_voter_that_does_not_agree_is_told_again(fields: dict[str, Any], agrees: bool) -> None:
    core, role = resigned()
    request = role.end_epochs[2]
    answer(core, **fields)
    assert (2 in role.end_epochs) == (not agrees)
    assert (request.request_id, request.failures) == (0, int(not agrees))


@pytest.mark.parametrize("error", [ErrorCode.NONE, INELIGIBLE])
def test_an_answer_of_a_later_epoch_leaves_nothing_to_repeat(error: ErrorCode) -> None:
    core, role = resigned()
    request = role.end_epochs[2]
    answer(core, error=error, epoch=EPOCH + 1, leader_id=NO_NODE)
    assert isinstance(core.role, Unattached)
    assert (request.request_id, request.failures) == (0, 0)


@pytest.mark.parametrize(("request_id", "purpose"), [(6, Purpose.END_EPOCH), (5, Purpose.PROBE)])
def test_an_answer_to_another_request_ends_nothing(request_id: int, purpose: Purpose) -> None:
    core, role = resigned()
    role.end_epochs[2].purpose = purpose
    given = {"error": ErrorCode.NONE, "leader_id": 1, "epoch": EPOCH + 1}
    on_end_response(core, 2, EndQuorumEpochResponse(request_id, **given))
    assert core.role is role
    assert 2 in role.end_epochs
    assert reported(core, MessageIgnored)


def test_an_end_epoch_of_another_role_is_closed() -> None:
    core = core_of(follower())
    request = PeerRequest(2, Purpose.END_EPOCH)
    core.requests.open(request, 5)
    answer(core, leader_id=LEADER, error=INELIGIBLE)
    assert (request.request_id, request.failures) == (0, 0)


def test_the_answer_of_a_transfer_s_target_is_the_transfer_s() -> None:
    core, role = leading()
    request = PeerRequest(2, Purpose.TRANSFER)
    role.transfer = Transfer(key(2), 0, NEVER_MS, request)
    core.requests.open(request, 5)
    answer(core)
    assert request.request_id == 5
    answer(core, error=INELIGIBLE)
    assert role.transfer is None
    assert reported(core, TransferEnded)


# The receiving side.


def end(core: CoreState, *, is_proven: bool = True, **fields: Any) -> ErrorCode:
    """Return the answer to an EndQuorumEpoch."""
    given: dict[str, Any] = {
        "cluster_id": CLUSTER,
        "leader": key(LEADER),
        "epoch": EPOCH,
        "preferred_successors": (ME, OTHER),
        **fields,
    }
    on_end_request(core, SENDER, EndQuorumEpochRequest(70, **given), is_proven=is_proven)
    ((to, response),) = sent_of(core, EndQuorumEpochResponse)
    assert (to, response.request_id) == (SENDER, 70)
    refusals = [response.error] if response.error is not ErrorCode.NONE else []
    assert [each.error for each in reported(core, RequestRefused)] == refusals
    if not refusals:
        assert response == EndQuorumEpochResponse(
            70, ErrorCode.NONE, core.leader_id, EPOCH, core.answering_endpoints()
        )
    return response.error


WRONG: dict[str, Any] = {"campaign_now": True, "preferred_successors": (OTHER,)}


@pytest.mark.parametrize(
    ("role", "is_proven", "fields", "error"),
    [
        ({}, True, {}, ErrorCode.NONE),
        ({}, False, {}, ErrorCode.NONE),
        (CONTACT, True, {}, ErrorCode.NONE),
        (CONTACT, False, {}, INELIGIBLE),
        ({}, False, {"campaign_now": True}, INELIGIBLE),
        ({}, True, WRONG, NO_VOTER_KEY),
        ({}, True, {**WRONG, "preferred_successors": ()}, NO_VOTER_KEY),
        ({}, True, {**WRONG, "preferred_successors": (OTHER, ME)}, NO_VOTER_KEY),
        ({}, True, {**WRONG, "cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({}, True, {**WRONG, "epoch": EPOCH - 1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({}, True, {**WRONG, "leader": key(77)}, NO_VOTER_KEY),
        ({}, False, {"leader": key(77), "campaign_now": True}, INELIGIBLE),
        (CONTACT, False, {"leader": key(3)}, INELIGIBLE),
        (CONTACT, True, {"epoch": EPOCH + 1}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (CONTACT, False, {"epoch": EPOCH + 1}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (CONTACT, True, {"leader": key(3)}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_who_may_end_an_epoch(
    role: dict[str, Any], is_proven: bool, fields: dict[str, Any], error: ErrorCode
) -> None:
    """Refused is what names no successor, no leader, or would depose a leader in contact."""
    core = core_of(follower(**role))
    assert end(core, is_proven=is_proven, **fields) is error
    ignored = [each.reason for each in reported(core, MessageIgnored)]
    is_second = error is ErrorCode.INVALID_REQUEST
    assert ignored == ([IgnoreReason.SECOND_LEADER] if is_second else [])
    assert all(each.is_violation for each in reported(core, MessageIgnored))
    if error is not ErrorCode.NONE:
        assert isinstance(core.role, Follower)
        assert core.role.campaign_at_ms == NEVER_MS


@pytest.mark.parametrize(("successors", "wait_ms"), [((1, 3), 0), ((3, 1), 500), ((3,), 1_000)])
def test_a_follower_campaigns_after_its_pause(successors: tuple[NodeId, ...], wait_ms: int) -> None:
    role = follower()
    core = core_of(role)
    end(core, preferred_successors=tuple(map(key, successors)))
    assert role.campaign_at_ms == NOW_MS + wait_ms
    assert core.known_leader.lost is not None


@pytest.mark.parametrize(
    ("retry_ms", "expected_ms"),
    [(NEVER_MS, NOW_MS + 500), (NOW_MS + 400, NOW_MS + 400), (NOW_MS + 600, NOW_MS + 500)],
)
@pytest.mark.parametrize("is_proven", [True, False])
def test_a_voter_that_asks_for_pre_votes_asks_again_after_its_pause(
    retry_ms: int, expected_ms: int, is_proven: bool
) -> None:
    role = Prospective(NEVER_MS, {}, fail_fast=False, retry_ms=retry_ms)
    core = core_of(role)
    assert end(core, preferred_successors=(OTHER, ME), is_proven=is_proven) is ErrorCode.NONE
    assert core.role is role
    assert (role.fail_fast, role.retry_ms) == (True, expected_ms)


def test_an_end_of_an_unknown_leader_s_epoch_is_also_its_beginning() -> None:
    core = core_of(Unattached(NEVER_MS), leader_id=NO_NODE)
    end(core)
    assert isinstance(core.role, Follower)
    assert core.leader_id == LEADER
    assert core.role.campaign_at_ms == NOW_MS


@pytest.mark.parametrize("is_prospective", [False, True])
def test_the_first_successor_campaigns_without_a_pre_vote(is_prospective: bool) -> None:
    """It agrees first, in the epoch of the leader that asked."""
    core = core_of(Prospective(NEVER_MS, {}, fail_fast=False) if is_prospective else follower())
    core.adopt_election(ElectionState(EPOCH, LEADER))
    request = EndQuorumEpochRequest(
        70, CLUSTER, key(LEADER), EPOCH, (ME, OTHER), campaign_now=True
    )  # fmt: skip
    on_end_request(core, SENDER, request, is_proven=True)
    ((_, response),) = sent_of(core, EndQuorumEpochResponse)
    assert (response.error, response.epoch) == (ErrorCode.NONE, EPOCH)
    assert isinstance(core.role, Candidate)
    assert core.epoch == EPOCH + 1
    assert not reported(core, RequestRefused)


def test_a_successor_that_may_not_campaign_refuses() -> None:
    core = core_of(follower())
    core.process.is_shutting_down = True
    assert end(core, campaign_now=True) is INELIGIBLE
    assert core.epoch == EPOCH

"""BeginQuorumEpoch on both sides, case by case: what its answers teach, and who is followed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from quorum.core.contract.events import MessageIgnored, RequestRefused, VoterChangeEnded
from quorum.core.contract.reasons import IgnoreReason
from quorum.core.leadership.leadership_term import (
    on_begin_failed,
    on_begin_request,
    on_begin_response,
)
from quorum.core.messages.epoch_messages import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.peer_requests import PeerRequest, Purpose
from quorum.core.state.pending_change import ChangeKind, PendingChange
from quorum.core.state.roles import Candidate, Follower, Prospective, Resigned, Role, Unattached
from quorum.core.voters.versions import OWN_KRAFT_VERSIONS
from quorum.errors import ErrorCode
from quorum.types import NO_NODE, Endpoint, LeaderAndEpoch, ReplicaKey, VersionRange
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
SUPPORTED = (OWN_KRAFT_VERSIONS, VersionRange("f", 1, 2))
CLIENT = Endpoint("CLIENT", "leader", 9092)
INVALID = ErrorCode.INVALID_REQUEST
NO_VOTER_KEY = ErrorCode.INVALID_VOTER_KEY
UNKNOWN_EPOCH = ErrorCode.UNKNOWN_LEADER_EPOCH


# The side that leads.


def answer(core: CoreState, request_id: int = 5, **fields: Any) -> None:
    given = {"error": ErrorCode.NONE, "leader_id": 1, "epoch": EPOCH, **fields}
    response = BeginQuorumEpochResponse(request_id, supported=SUPPORTED, **given)
    on_begin_response(core, 2, response)


@pytest.mark.parametrize(
    ("fields", "agrees"),
    [
        ({}, True),
        ({"leader_id": NO_NODE}, True),
        ({"error": INVALID}, False),
        ({"epoch": EPOCH - 1}, False),
        ({"epoch": EPOCH - 1, "error": INVALID}, False),
        ({"leader_id": 3}, False),
        ({"epoch": EPOCH + 1, "leader_id": NO_NODE}, False),
    ],
)
def test_the_answer_of_a_voter_that_agrees_counts(fields: dict[str, Any], agrees: bool) -> None:
    core, role = leading()
    replica = role.remote[2]
    core.requests.open(replica.begin, 5)
    replica.begin.failures = 3
    answer(core, **fields)
    assert replica.begin.request_id == 0
    assert replica.begin.failures == (0 if agrees else 3)
    assert replica.supported == (SUPPORTED if agrees else None)
    assert replica.supported_ms == NOW_MS or not agrees
    assert core.epoch == max(EPOCH, fields.get("epoch", EPOCH))


@pytest.mark.parametrize(("request_id", "purpose"), [(6, Purpose.BEGIN_EPOCH), (5, Purpose.VOTE)])
def test_an_answer_to_another_request_says_nothing(request_id: int, purpose: Purpose) -> None:
    core, role = leading()
    replica = role.remote[2]
    replica.begin.purpose = purpose
    core.requests.open(replica.begin, 5)
    answer(core, request_id, epoch=EPOCH + 1)
    assert core.role is role
    assert replica.begin.request_id == 5
    assert reported(core, MessageIgnored)


@pytest.mark.parametrize("purpose", [Purpose.BEGIN_EPOCH, Purpose.PROBE])
def test_an_answer_is_nothing_to_who_leads_no_longer(purpose: Purpose) -> None:
    core = core_of(follower())
    core.requests.open(PeerRequest(2, purpose), 5)
    answer(core, epoch=EPOCH + 1)
    assert (core.epoch, list(core.requests), core.out.events) == (EPOCH, [], [])


def test_the_answer_to_a_probe_is_the_changes() -> None:
    core, role = leading()
    change = role.change = PendingChange(ChangeKind.UPDATE, voter(2), None)
    core.requests.open(change.probe, 5)
    role.remote[2].begin.failures = 3
    answer(core, error=INVALID)
    assert role.change is None
    assert reported(core, VoterChangeEnded)
    assert role.remote[2].begin.failures == 3


@pytest.mark.parametrize("upkeep_ms", [NOW_MS + 1, NEVER_MS])
def test_a_request_that_failed_is_repeated_after_a_pause(upkeep_ms: int) -> None:
    core, role = leading()
    role.upkeep_due_ms = upkeep_ms
    request = role.remote[2].begin
    core.requests.open(request, 5)
    on_begin_failed(core, request)
    assert (request.request_id, request.failures) == (0, 1)
    due_ms = NOW_MS + core.config.retry_backoff_ms
    assert request.due_ms == due_ms
    assert role.upkeep_due_ms == min(due_ms, upkeep_ms)


def test_a_request_of_a_former_leader_that_failed_moves_no_deadline() -> None:
    core = core_of(follower())
    request = PeerRequest(2, Purpose.BEGIN_EPOCH)
    on_begin_failed(core, request)
    assert request.failures == 1
    assert isinstance(core.role, Follower)


# The receiving side.


def begin(core: CoreState, *, is_proven: bool = True, **fields: Any) -> BeginQuorumEpochResponse:
    """Return the answer to a BeginQuorumEpoch."""
    given: dict[str, Any] = {
        "cluster_id": CLUSTER,
        "voter": key(1),
        "leader": key(LEADER),
        "epoch": EPOCH,
        "leader_endpoints": (CLIENT,),
        **fields,
    }
    on_begin_request(core, SENDER, BeginQuorumEpochRequest(70, **given), is_proven=is_proven)
    ((to, response),) = sent_of(core, BeginQuorumEpochResponse)
    assert (to, response.request_id) == (SENDER, 70)
    refusals = [response.error] if response.error is not ErrorCode.NONE else []
    assert [each.error for each in reported(core, RequestRefused)] == refusals
    return response


def in_contact() -> Follower:
    return follower(has_fetched=True, fetch_deadline_ms=NOW_MS + 1)


@pytest.mark.parametrize("is_proven", [True, False])
@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, ErrorCode.NONE),
        ({"voter": ReplicaKey(NO_NODE)}, ErrorCode.NONE),
        ({"voter": key(3)}, NO_VOTER_KEY),
        ({"voter": ReplicaKey(1, bytes(15) + b"x")}, NO_VOTER_KEY),
        ({"voter": key(3), "cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"epoch": EPOCH - 1, "cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"voter": key(3), "epoch": EPOCH - 1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"leader": key(1)}, INVALID),
        ({"voter": key(3), "leader": key(77)}, ErrorCode.INELIGIBLE_REPLICA),
        ({"voter": key(3), "epoch": EPOCH + 1}, UNKNOWN_EPOCH),
        ({"leader": key(77), "epoch": EPOCH - 1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"voter": key(3), "leader": key(3)}, INVALID),
        ({"leader": key(3)}, INVALID),
    ],
)
def test_an_announcement_is_refused_for_the_first_thing_that_is_wrong(
    fields: dict[str, Any], error: ErrorCode, is_proven: bool
) -> None:
    """To a follower in contact with node 2."""
    core = core_of(in_contact())
    core.process.versions = replace(core.process.versions, supported=SUPPORTED)
    response = begin(core, is_proven=is_proven, **fields)
    assert response.error is error
    assert (core.epoch, core.leader_id) == (EPOCH, LEADER)
    is_second = fields.get("leader") == key(3)
    ignored = [(each.reason, each.is_violation) for each in reported(core, MessageIgnored)]
    assert ignored == ([(IgnoreReason.SECOND_LEADER, True)] if is_second else [])
    if error is ErrorCode.NONE:
        # Clients are sent to the listeners that a message adds.
        known = (*voter(LEADER).endpoints, *((CLIENT,) if is_proven else ()))
        assert response == BeginQuorumEpochResponse(
            70, ErrorCode.NONE, LEADER, EPOCH, known, SUPPORTED
        )


def waiting(kind: str) -> Role:
    roles: dict[str, Role] = {
        "unattached": Unattached(NOW_MS + 5),
        "prospective": Prospective(NOW_MS + 5, {}, fail_fast=False),
        "candidate": Candidate(NOW_MS + 5, {}, fail_fast=False),
        "resigned": Resigned(NOW_MS + 5, (), {}),
        "follower": follower(3, fetch_deadline_ms=NOW_MS + 5),
    }
    return roles[kind]


@pytest.mark.parametrize(
    ("kind", "known", "epoch"),
    [
        ("unattached", NO_NODE, EPOCH),
        ("prospective", NO_NODE, EPOCH),
        ("candidate", NO_NODE, EPOCH),
        ("follower", 3, EPOCH),
        ("unattached", NO_NODE, EPOCH + 1),
        ("prospective", LEADER, EPOCH + 1),
        ("candidate", NO_NODE, EPOCH + 1),
        ("resigned", 1, EPOCH + 1),
        ("follower", 3, EPOCH + 1),
    ],
)
@pytest.mark.parametrize("is_proven", [True, False])
def test_an_announced_leader_is_followed(
    kind: str, known: int, epoch: int, is_proven: bool
) -> None:
    core = core_of(waiting(kind), leader_id=known)
    core.peer_failed(LEADER)
    assert begin(core, epoch=epoch, is_proven=is_proven).error is ErrorCode.NONE
    assert isinstance(core.role, Follower)
    assert (core.epoch, core.leader_id) == (epoch, LEADER)
    assert core.following.peers.failures(LEADER) == 0
    puts_off = is_proven and kind != "follower"
    puts_off = puts_off or (is_proven and epoch > EPOCH)
    assert (core.role.fetch_deadline_ms > NOW_MS + 5) is puts_off


def test_an_announcement_of_the_known_leader_makes_it_ready_to_be_asked() -> None:
    role = in_contact()
    core = core_of(role)
    core.peer_failed(LEADER)
    core.peer_failed(3)
    begin(core)
    assert core.role is role
    assert [core.following.peers.failures(each) for each in (LEADER, 3)] == [0, 1]


@pytest.mark.parametrize("is_proven", [True, False])
def test_only_the_leader_itself_calls_off_a_campaign(is_proven: bool) -> None:
    """Both kinds are agreed to (ADR 52): the node does not contradict that leader."""
    role = waiting("prospective")
    core = core_of(role)
    lost = core.known_leader.lost = LeaderAndEpoch(LEADER, EPOCH)
    assert begin(core, is_proven=is_proven).error is ErrorCode.NONE
    assert core.known_leader.lost == (None if is_proven else lost)
    assert (core.role is role) is not is_proven
    assert core.leader_id == LEADER
    if is_proven:
        assert isinstance(core.role, Follower)
        assert core.known_leader.endpoints == (*voter(LEADER).endpoints, CLIENT)

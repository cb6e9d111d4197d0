"""Requests to peers and what each response teaches: sending, failing, matching, case by case."""

from __future__ import annotations

from typing import Any

import pytest

from quorum.core.contract.events import MessageIgnored
from quorum.core.contract.reasons import IgnoreReason
from quorum.core.messages.epoch_messages import EndQuorumEpochResponse
from quorum.core.messages.read_messages import ReadRound
from quorum.core.protocol.epoch_claims import RESPONSE_RAISE_MAX
from quorum.core.protocol.requests import (
    answered,
    find_request,
    has_timed_out,
    is_to_be_sent,
    next_attempt,
    response_due_ms,
    retry_later,
)
from quorum.core.protocol.responses import (
    learn_from_response,
    note_leader_contact,
    take_in_flight,
)
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.peer_requests import InFlight, PeerRequest, Purpose
from quorum.core.state.peers import backoff_ms
from quorum.core.state.roles import Follower, Unattached
from quorum.core.state.timers import Timer
from quorum.core.state.upstream import RelayPlan
from quorum.core.voters.voter_set import VoterSet
from quorum.errors import ErrorCode
from quorum.types import NO_NODE, Endpoint, LeaderAndEpoch, NodeId, Voter
from tests.support.bare_core import (
    EPOCH,
    LEADER,
    LOG_END,
    NOW_MS,
    core_of,
    follower,
    leading,
    reported,
)
from tests.support.core_disk import key, voter

PEER = 3
OTHER = 9
SERVER = -2
CLIENT = Endpoint("CLIENT", "leader", 9092)


def request(purpose: Purpose = Purpose.VOTE, **fields: Any) -> PeerRequest:
    return PeerRequest(PEER, purpose, **fields)


def response(request_id: int = 5, **fields: Any) -> EndQuorumEpochResponse:
    given = {"error": ErrorCode.NONE, "leader_id": LEADER, "epoch": EPOCH, **fields}
    return EndQuorumEpochResponse(request_id, **given)


def ignored(core: CoreState) -> list[tuple[IgnoreReason, str, bool]]:
    events = reported(core, MessageIgnored)
    return [(each.reason, each.detail, each.is_violation) for each in events]


# Sending.


@pytest.mark.parametrize(
    ("fields", "is_sent", "fired", "failures"),
    [
        ({"due_ms": NOW_MS}, True, [], 0),
        ({"due_ms": NOW_MS + 1}, False, [], 0),
        ({"due_ms": NOW_MS, "failures": 1}, True, [Timer.RETRY_BACKOFF], 1),
        ({"due_ms": NOW_MS + 1, "failures": 1}, False, [], 1),
        ({"due_ms": NOW_MS, "request_id": 5}, False, [Timer.REQUEST_TIMEOUT], 1),
        ({"due_ms": NOW_MS + 1, "request_id": 5}, False, [], 0),
    ],
)
def test_a_request_is_sent_when_it_is_due_and_fails_when_it_is_overdue(
    fields: dict[str, Any], is_sent: bool, fired: list[Timer], failures: int
) -> None:
    core = core_of(follower())
    asked = request(**fields)
    assert is_to_be_sent(core, asked) is is_sent
    assert list(core.timers_fired) == [(each, Purpose.VOTE) for each in fired]
    assert asked.failures == failures


@pytest.mark.parametrize(
    ("request_id", "left_ms", "expected"),
    [(5, 0, True), (5, 1, False), (0, 0, False)],
)
def test_only_an_open_request_times_out(request_id: int, left_ms: int, expected: bool) -> None:
    core = core_of(follower())
    asked = request(due_ms=NOW_MS + left_ms)
    if request_id:
        core.requests.open(asked, request_id)
    assert has_timed_out(core, asked) is expected
    assert (asked.request_id, asked.failures) == ((0, 1) if expected else (request_id, 0))
    assert core.timers_fired[Timer.REQUEST_TIMEOUT, Purpose.VOTE] == expected


def test_an_attempt_has_a_number_of_its_own_and_waits_for_the_time_out() -> None:
    core = core_of(follower())
    asked = request()
    first, second = next_attempt(core, asked), next_attempt(core, asked)
    assert second == first + 1
    assert list(core.requests) == [asked]
    assert (core.requests.get(first), core.requests.get(second)) == (None, asked)
    assert asked.due_ms == NOW_MS + core.config.request_timeout_ms


def test_each_failure_in_a_row_lengthens_the_pause() -> None:
    core = core_of(follower())
    asked = request()
    for failures in (1, 2, 3):
        next_attempt(core, asked)
        retry_later(core, asked)
        assert list(core.requests) == []
        assert asked.failures == failures
        assert asked.due_ms == NOW_MS + backoff_ms(core.config, failures)


@pytest.mark.parametrize(("ticket", "has_left"), [(2, True), (3, True), (4, False)])
def test_a_request_that_waits_for_the_disk_has_no_time_out(ticket: int, has_left: bool) -> None:
    core = core_of(follower())
    core.disk.durable_ticket = 3
    expected = NOW_MS + core.config.request_timeout_ms if has_left else NEVER_MS
    assert response_due_ms(core, ticket) == expected


# Matching.


@pytest.mark.parametrize(
    ("purpose", "peer", "sender", "request_id", "is_answer"),
    [
        (Purpose.VOTE, PEER, PEER, 5, True),
        (Purpose.FETCH, PEER, PEER, 5, True),
        (Purpose.PROBE, PEER, PEER, 5, False),
        (Purpose.VOTE, PEER, OTHER, 5, False),
        (Purpose.VOTE, PEER, PEER, 6, False),
        (Purpose.VOTE, PEER, PEER, 0, False),
        (Purpose.VOTE, SERVER, OTHER, 5, False),
        (Purpose.FETCH, SERVER, OTHER, 5, True),
    ],
)
def test_which_response_answers_a_request(
    purpose: Purpose, peer: NodeId, sender: NodeId, request_id: int, is_answer: bool
) -> None:
    """It bears the request's number, comes from its peer and is of a purpose of its handler."""
    core = core_of(follower())
    asked = PeerRequest(peer, purpose)
    core.requests.open(asked, 5)
    found = find_request(core, sender, response(request_id), Purpose.VOTE, Purpose.FETCH)
    assert found is (asked if is_answer else None)
    assert asked.request_id == 5
    assert ignored(core) == ([] if is_answer else [(IgnoreReason.NEVER_ASKED, "", False)])
    assert answered(core, sender, response(request_id), Purpose.VOTE, Purpose.FETCH) is found
    assert asked.request_id == (0 if is_answer else 5)


@pytest.mark.parametrize(
    ("purpose", "due_ms", "request_id", "is_taken"),
    [
        (Purpose.FETCH, NOW_MS, 5, True),
        (Purpose.FETCH, NEVER_MS, 5, False),
        (Purpose.FETCH, NOW_MS, 6, False),
        (Purpose.FETCH_SNAPSHOT, NOW_MS, 5, False),
    ],
)
def test_only_a_fetch_that_has_left_is_answered(
    purpose: Purpose, due_ms: int, request_id: int, is_taken: bool
) -> None:
    """One that still waits for the disk has a number, but nobody can know it."""
    core = core_of(follower())
    flight = InFlight(LEADER, purpose, due_ms, 5, ticket=1)
    core.requests.begin_flight(flight)
    found = take_in_flight(core, LEADER, response(request_id), Purpose.FETCH)
    assert found is (flight if is_taken else None)
    assert core.requests.in_flight is (None if is_taken else flight)
    assert ignored(core) == ([] if is_taken else [(IgnoreReason.NEVER_ASKED, "", False)])


# Learning.


@pytest.mark.parametrize(
    ("fields", "is_present", "expected"),
    [
        ({}, True, []),
        ({"leader_id": NO_NODE}, True, []),
        ({"leader_id": 3}, False,
         [(IgnoreReason.SECOND_LEADER, f"3 of epoch {EPOCH}, not {LEADER} of {EPOCH}", True)]),
        ({"epoch": EPOCH - 1}, False, [(IgnoreReason.STALE_EPOCH, f"epoch {EPOCH - 1}", False)]),
        ({"epoch": -1}, False, [(IgnoreReason.EPOCH_OUT_OF_REACH, "epoch -1", True)]),
        ({"epoch": EPOCH + 1}, False, []),
        ({"epoch": EPOCH + RESPONSE_RAISE_MAX + 1}, False,
         [(IgnoreReason.EPOCH_OUT_OF_REACH, f"epoch {EPOCH + RESPONSE_RAISE_MAX + 1}", True)]),
    ],
)  # fmt: skip
def test_a_response_is_used_in_its_own_epoch_only(
    fields: dict[str, Any], is_present: bool, expected: list[Any]
) -> None:
    core = core_of(follower(has_fetched=True))
    assert learn_from_response(core, PEER, response(**fields)) is is_present
    assert ignored(core) == expected
    rises = fields.get("epoch") == EPOCH + 1
    assert (core.epoch, core.leader_id) == (EPOCH + rises, LEADER)


def test_a_response_tells_an_unattached_replica_who_leads() -> None:
    core = core_of(Unattached(NEVER_MS), leader_id=NO_NODE)
    assert learn_from_response(core, PEER, response())
    assert isinstance(core.role, Follower)
    assert core.leader_id == LEADER


def test_a_response_cannot_name_the_leader_of_an_epoch_that_this_node_leads() -> None:
    core, role = leading()
    assert not learn_from_response(core, PEER, response())
    assert core.role is role
    assert [reason for reason, *_ in ignored(core)] == [IgnoreReason.SECOND_LEADER]


@pytest.mark.parametrize("leader_id", [LEADER, NO_NODE])
def test_a_response_that_names_the_known_leader_may_add_its_endpoints(leader_id: NodeId) -> None:
    core = core_of(follower())
    named = response(leader_id=leader_id, leader_endpoints=(CLIENT,))
    assert learn_from_response(core, PEER, named)
    recorded = voter(LEADER).endpoints
    expected = (*recorded, CLIENT) if leader_id == LEADER else ()
    assert core.known_leader.endpoints == expected


def test_a_response_without_endpoints_takes_those_of_a_newer_voter_record() -> None:
    core = core_of(follower())
    assert learn_from_response(core, PEER, response())
    moved = Voter(key(LEADER), (CLIENT,))
    core.voters.add(LOG_END, VoterSet((voter(1), moved, voter(3))))
    assert learn_from_response(core, PEER, response())
    assert core.known_leader.endpoints == (CLIENT,)
    further = Endpoint("PEERS", "leader", 9093)
    assert learn_from_response(core, PEER, response(leader_endpoints=(further,)))
    assert core.known_leader.endpoints == (CLIENT, further)


def test_what_was_forgotten_of_the_leader_is_learned_from_its_next_response() -> None:
    core = core_of(follower())
    assert learn_from_response(core, PEER, response())
    core.known_leader.forget()
    assert learn_from_response(core, PEER, response())
    assert core.known_leader.endpoints == voter(LEADER).endpoints


def test_an_answer_of_the_leader_restarts_the_fetch_timer() -> None:
    """And it takes back every suspicion: that leader is alive, and so is the peer that answered."""
    role = follower(has_campaigned=True, campaign_at_ms=NOW_MS, fetch_deadline_ms=NOW_MS)
    core = core_of(role, relays=RelayPlan(fetch_from=(PEER,)))
    core.known_leader.lost = LeaderAndEpoch(LEADER, EPOCH)
    core.peer_failed(PEER)
    core.peer_failed(OTHER)
    note_leader_contact(core, role, PEER, ReadRound(EPOCH, 1))
    assert (role.has_fetched, role.has_campaigned) == (True, False)
    assert role.fetch_deadline_ms == NOW_MS + role.fetch_timeout_ms
    assert role.campaign_at_ms == NEVER_MS
    assert core.known_leader.lost is None
    failures = [core.following.peers.failures(each) for each in (PEER, OTHER)]
    assert failures == [0, 1]
    upstream = core.following.upstream
    assert (upstream.current, upstream.direct_from_ms) == (PEER, NEVER_MS)


@pytest.mark.parametrize(
    ("read_round", "is_taken"),
    [
        (ReadRound(EPOCH, 3), True),
        (ReadRound(EPOCH, 2), False),
        (ReadRound(EPOCH, 1), False),
        (ReadRound(EPOCH + 1, 3), False),
        (ReadRound(EPOCH - 1, 3), False),
    ],
)
def test_a_later_read_round_of_the_epoch_is_remembered(
    read_round: ReadRound, is_taken: bool
) -> None:
    known = ReadRound(EPOCH, 2)
    role = follower(read_round=known)
    note_leader_contact(core_of(role), role, LEADER, read_round)
    assert role.read_round is (read_round if is_taken else known)

"""Requests to peers: who may answer, which attempt is waited for, and how long a peer is left."""

from __future__ import annotations

import pytest

from quorum.config import QuorumConfig
from quorum.core.state.peer_requests import InFlight, PeerRequest, PendingRequests, Purpose
from quorum.core.state.peers import PeerTable, backoff_ms

BY_ADDRESS = {Purpose.FETCH, Purpose.FETCH_SNAPSHOT, Purpose.LEADER_SEARCH}
SERVER = -2
"""The address of a bootstrap server whose number is not known."""


@pytest.mark.parametrize("purpose", Purpose)
@pytest.mark.parametrize(
    ("peer", "sender", "may_answer"),
    [
        (2, 2, True),
        (0, 0, True),
        (2, 3, False),
        (0, 2, False),
        (2, 0, False),
        (SERVER, SERVER, True),
        (SERVER, 2, None),
        (SERVER, 0, None),
        (SERVER, -3, None),
        (2, SERVER, None),
        (0, -1, None),
    ],
)
def test_an_address_may_answer_under_its_number_where_addresses_are_asked(
    purpose: Purpose, peer: int, sender: int, may_answer: bool | None
) -> None:
    expected = purpose in BY_ADDRESS if may_answer is None else may_answer
    assert PeerRequest(peer, purpose).is_answered_by(sender) == expected


def test_only_the_newest_attempt_is_waited_for() -> None:
    requests = PendingRequests(40)
    request = PeerRequest(2, Purpose.VOTE)
    requests.open(request, 41)
    requests.open(request, 42)
    assert request.request_id == 42
    assert requests.get(41) is None
    assert requests.get(42) is request
    assert list(requests) == [request]
    requests.close(request)
    requests.close(request)
    assert (request.request_id, list(requests)) == (0, [])


def test_requests_of_a_role_end_with_it_and_those_of_the_log_do_not() -> None:
    requests = PendingRequests(0)
    opened = [PeerRequest(2, purpose) for purpose in Purpose]
    for request in opened:
        requests.open(request, requests.next_id())
    requests.close_all(Purpose.VOTE, Purpose.PROBE)
    assert [each.purpose for each in opened if not each.request_id] == [
        Purpose.VOTE, Purpose.PROBE,
    ]  # fmt: skip
    requests.close_of_role()
    assert {each.purpose for each in requests} == {Purpose.BOOTSTRAP, Purpose.CHAIN_DIGEST}


def test_a_request_that_replaces_another_in_flight_is_open_under_its_id() -> None:
    requests = PendingRequests(0)
    first, second = (InFlight(2, Purpose.FETCH, request_id=each, ticket=0) for each in (7, 8))
    requests.begin_flight(first)
    assert requests.get(7) is first
    requests.begin_flight(second)
    assert (first.request_id, requests.get(7), requests.get(8)) == (0, None, second)
    requests.begin_flight(second)
    assert (second.request_id, requests.get(8)) == (8, second), "it stays as it is"
    requests.end_flight()
    assert (second.request_id, requests.get(8), requests.in_flight) == (0, None, None)


@pytest.mark.parametrize(
    ("base_ms", "pauses"),
    [
        (0, [1, 1, 2, 4, 8, 16, 16]),
        (1, [1, 1, 2, 4, 8, 16, 16]),
        (2, [2, 2, 4, 8, 16, 32, 32]),
        (20, [20, 20, 40, 80, 160, 320, 320]),
    ],
)
def test_the_pause_doubles_up_to_sixteen_times(base_ms: int, pauses: list[int]) -> None:
    config = QuorumConfig(retry_backoff_ms=base_ms)
    assert [backoff_ms(config, failures) for failures in range(7)] == pauses


def test_a_peer_is_ready_again_after_its_pause_or_its_answer() -> None:
    table = PeerTable(QuorumConfig(retry_backoff_ms=20))
    table.succeeded(2)
    for _ in range(2):
        table.failed(2, 1_000)
    table.failed(3, 1_000)
    assert [table.failures(each) for each in (2, 3, 4)] == [2, 1, 0]
    assert [table.ready_ms(each) for each in (2, 3, 4)] == [1_040, 1_020, 0]
    table.succeeded(2)
    table.succeeded(4)
    assert [table.failures(each) for each in (2, 3)] == [0, 1]
    assert [table.ready_ms(each) for each in (2, 3)] == [0, 1_020]
    table.reset()
    assert (table.failures(3), table.ready_ms(3)) == (0, 0)

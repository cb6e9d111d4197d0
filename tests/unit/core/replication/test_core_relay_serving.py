"""What a relay answers to the observers below it: at once, later, or not at all."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from quorum.core.contract.reasons import IgnoreReason
from quorum.core.following.relaying import problem_with_path, source_of_records
from quorum.core.messages.fetch_messages import FetchResponse
from quorum.core.state.core_state import CoreState
from quorum.core.state.upstream import RelayPlan
from quorum.errors import ErrorCode
from quorum.types import OffsetAndEpoch, ReplicaKey
from tests.support.core_cluster import CLUSTER
from tests.support.core_disk import key
from tests.support.relay_node import CONFIG, WAIT_MS, RelayNode


def test_an_observer_that_has_everything_is_answered_when_its_time_is_over() -> None:
    relay = RelayNode()
    assert relay.ask() == []
    assert relay.after(WAIT_MS - 1) == []
    ((number, answer),) = relay.after(1)
    assert (number, answer.error, answer.high_watermark) == (1, ErrorCode.NONE, 3)
    assert (answer.records, answer.path) == (b"", (key(7),))


def test_a_relay_without_fetches_sets_no_timer() -> None:
    """With an observer below it wakes once a second for upkeep; without one it has longer."""
    for has_observer in (False, True):
        relay = RelayNode()
        # The high watermark is stored, which is due a second after the first answer.
        relay.after(1_000)
        if has_observer:
            assert relay.ask(fetch_offset=1)
        relay.fetch_answered(3)
        deadline_ms = relay.output.next_deadline_ms
        assert deadline_ms is not None
        assert (deadline_ms == relay.now_ms + 1_000) == has_observer


def test_a_responses_age_counts_from_the_leaders_response() -> None:
    """The age is unknown where the leader itself did not know it."""
    for age_ms, expected_ms in ((-1, -1), (0, 130), (20, 150)):
        relay = RelayNode()
        relay.now_ms += 30
        relay.fetch_answered(3, age_ms=age_ms)
        relay.now_ms += 100
        ((_, answer),) = relay.ask(fetch_offset=1)
        assert answer.leader_age_ms == expected_ms


def test_who_fetches_from_a_relay_is_seen_there_as_an_observer() -> None:
    relay = RelayNode()
    relay.ask(fetch_offset=1)
    (view,) = relay.node.tree().downstream
    assert (view.key, view.is_voter, view.log_end_offset) == (key(8), False, 1)


def test_records_below_the_high_watermark_are_served_at_once_and_no_others() -> None:
    ((_, answer),) = RelayNode().ask(fetch_offset=1)
    assert (answer.records.offset, answer.records.end_offset, answer.leader_id) == (1, 3, 1)
    assert answer.records.bytes_max > 1


def test_an_observer_that_knows_a_lower_high_watermark_is_answered_at_once() -> None:
    ((_, answer),) = RelayNode().ask(high_watermark=2)
    assert (answer.high_watermark, answer.records) == (3, b"")


def test_an_observer_above_the_high_watermark_waits_until_that_rises() -> None:
    relay = RelayNode()
    assert relay.ask(fetch_offset=4) == []
    ((number, answer),) = relay.fetch_answered(4)
    assert (number, answer.error, answer.high_watermark) == (1, ErrorCode.NONE, 4)


def test_an_observer_above_the_high_watermark_is_refused_when_its_time_is_over() -> None:
    relay = RelayNode()
    assert relay.ask(fetch_offset=4) == []
    ((_, answer),) = relay.after(WAIT_MS)
    assert answer.error is ErrorCode.OFFSET_NOT_AVAILABLE


@pytest.mark.parametrize("offset", [3, 4])
def test_a_repeated_request_has_the_earlier_one_answered(offset: int) -> None:
    """Goal: no request is left without an answer. Method: the same number twice."""
    relay = RelayNode()
    assert relay.ask(fetch_offset=offset) == []
    assert [number for number, _ in relay.ask(fetch_offset=offset)] == [1]
    assert len(relay.after(WAIT_MS)) == 1


def test_who_finds_no_place_to_wait_is_answered_at_once() -> None:
    relay = RelayNode()
    assert relay.ask(1) == relay.ask(2, replica=key(9)) == []
    assert [number for number, _ in relay.ask(3, replica=key(10))] == [3]
    assert len(relay.after(WAIT_MS)) == 2


def test_a_relay_waits_no_longer_than_its_own_limit() -> None:
    relay = RelayNode()
    assert relay.ask(max_wait_ms=10 * WAIT_MS) == []
    assert len(relay.after(WAIT_MS)) == 1


@pytest.mark.parametrize(
    ("replica", "error"),
    [
        (ReplicaKey(-1), ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (key(2), ErrorCode.INELIGIBLE_REPLICA),
        (key(6), ErrorCode.INELIGIBLE_REPLICA),
        (key(8), ErrorCode.NONE),
    ],
)
def test_consumers_voters_and_nodes_on_the_route_are_not_served(
    replica: ReplicaKey, error: ErrorCode
) -> None:
    ((_, answer),) = RelayNode(path=(key(6),)).ask(replica=replica, fetch_offset=1)
    assert answer.error is error


def test_a_chain_of_relays_ends_where_it_may_be_no_longer() -> None:
    ((_, answer),) = RelayNode(path=(key(6), key(5))).ask(fetch_offset=1)
    assert answer.error is ErrorCode.INELIGIBLE_REPLICA


def test_a_relay_serves_no_more_observers_than_it_may_know() -> None:
    relay = RelayNode()
    for number in (8, 9, 10):
        ((_, answer),) = relay.ask(replica=key(number), fetch_offset=1)
        assert answer.error is ErrorCode.NONE
    ((_, answer),) = relay.ask(replica=key(11), fetch_offset=1)
    assert answer.error is ErrorCode.RESOURCE_EXHAUSTED
    ((_, answer),) = relay.ask(replica=key(8), fetch_offset=1)
    assert answer.error is ErrorCode.NONE


def test_without_leader_contact_held_and_new_fetches_are_refused() -> None:
    relay = RelayNode()
    relay.now_ms += CONFIG.relay_age_max_ms - WAIT_MS + 1
    assert relay.ask() == []
    assert relay.after(WAIT_MS - 1) == [], "just young enough"
    ((_, answer),) = relay.after(1)
    assert answer.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    ((_, answer),) = relay.ask(2, fetch_offset=1)
    assert answer.error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_the_age_of_the_leaders_response_is_reported() -> None:
    relay = RelayNode()
    relay.now_ms += 40
    ((_, answer),) = relay.ask(fetch_offset=1)
    assert answer.contact_age_ms == 40


def test_a_diverging_log_gets_the_divergence_point() -> None:
    ((_, answer),) = RelayNode().ask(last_fetched_epoch=0)
    assert answer.diverging == OffsetAndEpoch(0, 0)
    assert (answer.path, answer.records) == ((key(7),), b"")


def test_when_an_observer_asked_last_is_shown_until_it_has_been_silent_for_long() -> None:
    relay = RelayNode()
    relay.now_ms += 25
    relay.ask()
    (view,) = relay.node.tree().downstream
    assert (view.key, view.last_fetch_ms, view.log_end_offset) == (key(8), relay.now_ms, 3)
    relay.now_ms += 5
    relay.ask(2, fetch_offset=4)
    (view,) = relay.node.tree().downstream
    assert view.log_end_offset == 3, "nothing above the high watermark counts"
    assert view.last_fetch_ms == relay.now_ms
    relay.after(CONFIG.observer_session_ms + 2_000)
    assert relay.node.tree().downstream == ()


def observer(**plan: Any) -> CoreState:
    """Node 5, which may fetch from relays 7 and 8 and knows leader 1."""
    core = CoreState(
        config=CONFIG, cluster_id=CLUSTER, me=key(5), rng=random.Random(1), bootstrap=(),
        relays=RelayPlan(**{"fetch_from": (7, 8), **plan}),
    )  # fmt: skip
    core.adopt_election(replace(core.election, epoch=1, leader_id=1))
    core.following.upstream.current = 7
    return core


@pytest.mark.parametrize(
    ("path", "age_ms", "problem"),
    [
        ((), -1, None),
        ((key(7),), 0, None),
        ((key(7), key(9)), 0, None),
        ((key(7), key(5)), 0, IgnoreReason.ROUTE_LOOP),
        ((key(7), key(9), key(10)), 0, IgnoreReason.ROUTE_TOO_LONG),
        ((key(7),), -1, IgnoreReason.NO_CONTACT_AGE),
    ],
)
def test_the_path_of_an_answer(
    path: tuple[ReplicaKey, ...], age_ms: int, problem: IgnoreReason | None
) -> None:
    answer = FetchResponse(1, ErrorCode.NONE, 1, 1, path=path, contact_age_ms=age_ms)
    found = problem_with_path(observer(), answer)
    assert (found[0] if found is not None else None) is problem


def test_a_relays_response_does_not_count_for_a_leader_only_request() -> None:
    answer = FetchResponse(1, ErrorCode.NONE, 1, 1, path=(key(7),), contact_age_ms=0)
    found = problem_with_path(observer(fetch_from=()), answer)
    assert found == (IgnoreReason.RELAY_NOT_USED, "relay 7")


def test_records_come_from_the_relay_while_it_is_used_and_else_from_the_leader() -> None:
    core = observer()
    assert source_of_records(core) == 7
    core.following.upstream.go_direct(core.now_ms, CONFIG)
    assert source_of_records(core) == 1
    core.following.upstream.current = 2
    assert source_of_records(observer(fetch_from=())) == 1
    known_of = observer()
    known_of.following.upstream.current = 2
    assert source_of_records(known_of) == 1, "2 is a voter that was asked who leads"

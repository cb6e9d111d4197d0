"""When an observer asks a relay and when the leader, and what it notes of an answer's route."""

from __future__ import annotations

import pytest

from quorum.core.contract.events import UpstreamChanged
from quorum.core.following.leader_search import whom_to_ask
from quorum.core.following.relaying import (
    may_go_direct,
    note_route,
    relay_times,
    relay_to_ask,
    source_of_records,
    subtree_report,
    uses_relays,
)
from quorum.core.messages.fetch_messages import FetchResponse
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.peer_requests import InFlight, Purpose
from quorum.core.state.replica_progress import ReplicaProgress
from quorum.core.state.roles import Role, Unattached
from quorum.core.state.upstream import RelayPlan, Upstream
from quorum.errors import ErrorCode
from quorum.types import NO_NODE, ReplicaKey
from tests.support.bare_core import EPOCH, LEADER, NOW_MS, core_of, follower
from tests.support.core_disk import key

RELAYS = (8, 9)
SOON_MS = NOW_MS + 500


def observer(
    role: Role | None = None,
    *,
    voters: tuple[int, ...] = (2, 3),
    relays: tuple[int, ...] = RELAYS,
    serves: bool = False,
    direct_from_ms: int | None = None,
    retry_ms: int | None = None,
    auto_join: bool = False,
) -> CoreState:
    """With ``retry_ms`` it fetches from the leader, as no relay answered."""
    core = core_of(
        follower() if role is None else role,
        voters=voters,
        relays=RelayPlan(serves, relays),
        auto_join=auto_join,
    )
    upstream = core.following.upstream
    if direct_from_ms is not None:
        upstream.direct_from_ms = direct_from_ms
    if retry_ms is not None:
        upstream.is_direct, upstream.retry_ms = True, retry_ms
    return core


def fail(core: CoreState, *peers: int) -> None:
    for peer in peers:
        core.following.peers.failed(peer, NOW_MS)


@pytest.mark.parametrize(
    ("relays", "voters", "auto_join", "expected"),
    [
        (RELAYS, (2, 3), False, True),
        ((), (2, 3), False, False),
        (RELAYS, (1, 2), False, False),
        (RELAYS, (2, 3), True, False),
    ],
)
def test_relays_are_for_observers_that_stay_observers(
    relays: tuple[int, ...], voters: tuple[int, ...], auto_join: bool, expected: bool
) -> None:
    core = observer(relays=relays, voters=voters, auto_join=auto_join)
    assert uses_relays(core) == expected
    assert (relay_to_ask(core) is not None) == expected
    assert may_go_direct(core) != expected


@pytest.mark.parametrize(
    ("direct_from_ms", "retry_ms", "is_relay_asked", "is_leader_asked"),
    [
        (None, None, True, False),
        # No relay has answered for a while: the patience ends now, or in a millisecond.
        (NOW_MS, None, False, True),
        (NOW_MS + 1, None, True, False),
        # The leader serves: the relays are tried again from now on, or in a millisecond.
        (NEVER_MS, NOW_MS, True, True),
        (NEVER_MS, NOW_MS + 1, False, True),
        (NOW_MS - 1, NOW_MS, True, True),
    ],
)
def test_patience_with_relays_and_their_next_try_have_times(
    direct_from_ms: int | None, retry_ms: int | None, is_relay_asked: bool, is_leader_asked: bool
) -> None:
    core = observer(direct_from_ms=direct_from_ms, retry_ms=retry_ms)
    assert (relay_to_ask(core) is not None) == is_relay_asked
    assert may_go_direct(core) == is_leader_asked


def test_of_the_relays_the_one_that_failed_longest_ago_is_asked() -> None:
    core = observer()
    assert relay_to_ask(core) == 8
    core.following.upstream.current = 9
    assert relay_to_ask(core) == 9
    fail(core, 9)
    assert relay_to_ask(core) == 8
    fail(core, 8)
    assert relay_to_ask(core) is None
    core.now_ms = core.following.peers.ready_ms(8)
    core.following.peers.failed(9, NOW_MS - 1)
    core.now_ms = core.following.peers.ready_ms(9)
    assert relay_to_ask(core) == 8


def test_with_a_silent_leader_the_relays_are_asked_and_in_its_place_a_peer() -> None:
    """Only one that fetches from the leader asks a peer first, if there is one to ask."""
    core = observer()
    fail(core, LEADER)
    assert whom_to_ask(core) in RELAYS
    core = observer(retry_ms=NOW_MS)
    fail(core, LEADER)
    assert whom_to_ask(core) == 3
    fail(core, 3)
    assert whom_to_ask(core) in RELAYS
    fail(core, *RELAYS)
    assert whom_to_ask(core) is None


def test_the_leader_is_asked_by_a_follower_that_goes_direct() -> None:
    assert whom_to_ask(observer(relays=())) == LEADER
    assert whom_to_ask(observer(retry_ms=SOON_MS)) == LEADER
    core = observer(relays=())
    fail(core, LEADER)
    assert whom_to_ask(core) == 3
    fail(core, 3)
    assert whom_to_ask(core) is None


@pytest.mark.parametrize(
    ("discover_at_ms", "asks"), [(0, True), (NOW_MS, True), (NOW_MS + 1, False)]
)
def test_a_searching_observer_waits_for_its_time(discover_at_ms: int, asks: bool) -> None:
    core = observer(Unattached(NEVER_MS, discover_at_ms), relays=())
    assert (whom_to_ask(core) in (2, 3)) == asks


# When something is due.


@pytest.mark.parametrize(
    ("relays", "direct_from_ms", "retry_ms", "failed", "times"),
    [
        ((), None, None, (), []),
        (RELAYS, None, None, (), [0, 0]),
        (RELAYS, SOON_MS, None, (), [0, 0, SOON_MS]),
        (RELAYS, SOON_MS, None, (9,), [0, NOW_MS + 20, SOON_MS]),
        (RELAYS, NEVER_MS, SOON_MS, (9,), [SOON_MS, SOON_MS]),
        (RELAYS, NEVER_MS, NOW_MS + 5, (9,), [NOW_MS + 5, NOW_MS + 20]),
        # Whoever goes direct waits for no patience.
        (RELAYS, SOON_MS, SOON_MS, (), [SOON_MS, SOON_MS]),
    ],
)
def test_the_times_of_the_relays(
    relays: tuple[int, ...],
    direct_from_ms: int | None,
    retry_ms: int | None,
    failed: tuple[int, ...],
    times: list[int],
) -> None:
    core = observer(relays=relays, direct_from_ms=direct_from_ms, retry_ms=retry_ms)
    fail(core, *failed)
    assert list(relay_times(core)) == times


def test_the_retry_of_an_earlier_time_delays_nothing() -> None:
    """Method: a relay has answered since, so its records come from it again."""
    core = observer(retry_ms=SOON_MS)
    core.following.upstream.succeeded(8)
    assert list(relay_times(core)) == [0, 0]


def test_a_voter_waits_for_no_relay() -> None:
    assert list(relay_times(observer(voters=(1, 2), direct_from_ms=SOON_MS))) == []


# What an answer says of its route.


def answered(
    core: CoreState, path: tuple[ReplicaKey, ...], *, contact_age_ms: int = 0, peer: int = 8
) -> list[UpstreamChanged]:
    core.out.events.clear()
    timeout_ms = core.config.request_timeout_ms
    flight = InFlight(peer, Purpose.FETCH, NOW_MS - 100 + timeout_ms, 5, ticket=0)
    response = FetchResponse(
        5, ErrorCode.NONE, LEADER, EPOCH, path=path, contact_age_ms=contact_age_ms
    )
    note_route(core, flight, response)
    return [each for each in core.out.events if isinstance(each, UpstreamChanged)]


def test_another_route_is_reported_by_an_observer_with_relays() -> None:
    core = observer()
    assert answered(core, (key(8),)) == [UpstreamChanged(8, (8,))]
    assert answered(core, (key(8),)) == []
    assert answered(core, (key(8), key(7))) == [UpstreamChanged(8, (8, 7))]
    assert answered(core, (), peer=2) == [UpstreamChanged(2, ())]
    assert answered(core, (), peer=2) == []
    assert core.following.upstream.epoch == EPOCH


def test_the_first_route_is_reported_even_if_it_is_that_to_the_leader() -> None:
    assert answered(observer(), (), peer=2) == [UpstreamChanged(2, ())]
    core = observer()
    core.following.upstream.epoch = 1
    assert answered(core, (), peer=2) == []


def test_without_relays_no_route_is_reported() -> None:
    core = observer(relays=())
    assert answered(core, (), peer=2) == []
    assert answered(core, (key(8),)) == []


def test_the_leader_led_at_the_departure_less_the_age_in_the_answer() -> None:
    core = observer()
    answered(core, (key(8),), contact_age_ms=30)
    assert core.following.upstream.confirmed_ms == NOW_MS - 130
    answered(core, (key(8),), contact_age_ms=10)
    assert core.following.upstream.confirmed_ms == NOW_MS - 110
    answered(core, (key(8),), contact_age_ms=20)
    assert core.following.upstream.confirmed_ms == NOW_MS - 110, "it never falls in an epoch"


def test_a_relay_on_the_route_is_not_below_this_one() -> None:
    core = observer(serves=True)
    assert core.relay is not None
    for node_id in (5, 8):
        progress = ReplicaProgress(key(node_id), is_voter=False, live_since_ms=NOW_MS)
        core.relay.downstream[key(node_id)] = progress
    answered(core, (key(8),))
    assert [*core.relay.downstream] == [key(5)]
    report = subtree_report(core, core.relay)
    assert report is None, "the subtree is counted anew later"
    core.relay.refresh()
    report = subtree_report(core, core.relay)
    assert report is not None
    assert report.links == ((5, 1),)


@pytest.mark.parametrize(
    ("current", "voters", "is_direct", "leader_id", "source"),
    [
        (8, (2, 3), False, LEADER, 8),
        (8, (2, 3), True, LEADER, LEADER),
        (8, (1, 2), False, LEADER, LEADER),
        (7, (2, 3), False, LEADER, LEADER),
        (7, (2, 3), False, NO_NODE, 7),
        (8, (2, 3), True, NO_NODE, 8),
    ],
)
def test_the_source_of_records(
    current: int, voters: tuple[int, ...], is_direct: bool, leader_id: int, source: int
) -> None:
    core = core_of(follower(), voters=voters, leader_id=leader_id)
    core.following.upstream = Upstream(RELAYS, current, is_direct=is_direct)
    assert source_of_records(core) == source

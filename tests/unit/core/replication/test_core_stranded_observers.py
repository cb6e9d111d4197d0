"""Who is remembered as ahead of a leader, how many, and for how long."""

from __future__ import annotations

import pytest

from quorum.core.contract.events import ObserverStranded
from quorum.core.messages.fetch_messages import FetchRequest, ReceivedFetchRequest
from quorum.core.replication.stranded_observers import REPLICAS_MAX, forget_silent, note_ahead
from quorum.core.state.core_state import CoreState
from quorum.core.state.roles import Leader
from quorum.types import NO_NODE, ReplicaKey
from tests.support.bare_core import CLUSTER, EPOCH, NOW_MS, leading, reported
from tests.support.core_disk import key

AHEAD = EPOCH + 3
OTHER_DISK = ReplicaKey(2, b"x" * 16)


def note(
    core: CoreState,
    leader: Leader,
    replica: ReplicaKey,
    *,
    epoch: int = AHEAD,
    is_proven: bool = True,
    is_disqualified: bool = False,
) -> None:
    request = FetchRequest(7, CLUSTER, replica, epoch, 0, 0, is_disqualified=is_disqualified)
    note_ahead(core, leader, ReceivedFetchRequest(request, is_proven=is_proven))


@pytest.mark.parametrize(
    ("replica", "is_disqualified", "is_noted"),
    [
        (key(9), False, True),
        (key(9), True, True),
        (key(2), False, False),
        (key(2), True, True),
        (OTHER_DISK, False, True),
        (ReplicaKey(NO_NODE), False, False),
    ],
)
def test_an_observer_is_noted_and_a_voter_is_not(
    replica: ReplicaKey, is_disqualified: bool, is_noted: bool
) -> None:
    """A voter's own answer moves the leader; one that never votes is an observer."""
    core, leader = leading()
    note(core, leader, replica, is_disqualified=is_disqualified)
    assert [*leader.ahead] == ([replica] if is_noted else [])
    assert len(reported(core, ObserverStranded)) == is_noted


@pytest.mark.parametrize(
    ("first", "second", "since_ms", "last_ms", "epoch", "events"),
    [
        (True, True, NOW_MS, NOW_MS + 5, AHEAD + 1, 1),
        (False, False, NOW_MS, NOW_MS + 5, AHEAD + 1, 1),
        # A proven Fetch counts from itself on; what is not proven changes nothing after it.
        (False, True, NOW_MS + 5, NOW_MS + 5, AHEAD + 1, 2),
        (True, False, NOW_MS, NOW_MS, AHEAD, 1),
    ],
)
def test_a_proven_fetch_counts_for_more(
    first: bool, second: bool, since_ms: int, last_ms: int, epoch: int, events: int
) -> None:
    core, leader = leading()
    note(core, leader, key(9), is_proven=first)
    core.now_ms += 5
    note(core, leader, key(9), is_proven=second, epoch=AHEAD + 1)
    known = leader.ahead[key(9)]
    assert (known.since_ms, known.last_ms, known.epoch) == (since_ms, last_ms, epoch)
    assert known.is_proven == (first or second)
    assert len(reported(core, ObserverStranded)) == events


@pytest.mark.parametrize("is_proven", [True, False])
def test_of_too_many_an_unproven_one_goes_first_and_then_the_longest_silent(
    is_proven: bool,
) -> None:
    core, leader = leading()
    for node_id in range(10, 10 + REPLICAS_MAX):
        note(core, leader, key(node_id), is_proven=node_id != 13 or is_proven)
        core.now_ms += 1
    everybody = {*leader.ahead}
    assert len(everybody) == REPLICAS_MAX
    note(core, leader, key(99))
    assert everybody - leader.ahead.keys() == {key(10 if is_proven else 13)}
    assert len(leader.ahead) == REPLICAS_MAX


def test_one_that_proves_itself_displaces_nobody() -> None:
    core, leader = leading()
    for node_id in range(10, 10 + REPLICAS_MAX):
        note(core, leader, key(node_id), is_proven=node_id not in (10, 25))
    everybody = {*leader.ahead}
    note(core, leader, key(25))
    assert {*leader.ahead} == everybody
    assert leader.ahead[key(25)].is_proven


@pytest.mark.parametrize(("more_ms", "is_known"), [(0, True), (1, False)])
def test_one_that_asks_no_more_is_forgotten(more_ms: int, is_known: bool) -> None:
    core, leader = leading()
    note(core, leader, key(9))
    core.now_ms += 10 * core.config.election_timeout_ms + more_ms
    forget_silent(core, leader)
    assert (key(9) in leader.ahead) == is_known

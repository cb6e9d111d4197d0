"""A follower that waits for an answer takes no turn, unless something is to be done."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorum.core.node.deadlines import follower_deadline
from quorum.core.node.raft_node import RaftNode
from quorum.core.positions.download import Download, SealedSnapshot
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.peer_requests import InFlight, Purpose
from quorum.core.state.pending_change import ChangeKind
from quorum.core.state.relay_table import Relay
from quorum.core.state.roles import Follower
from quorum.core.state.waiting_reads import ForwardedRead
from quorum.core.voters.voter_set import VoterSet
from quorum.types import OffsetAndEpoch
from tests.support.bare_core import EPOCH, LEADER, NOW_MS, core_of, follower
from tests.support.core_disk import voter

DUE_MS = 20_000
LATER_MS = 30_000
SNAPSHOT = OffsetAndEpoch(90, EPOCH)


def waiting(due_ms: int = LATER_MS, peer: int = LEADER) -> tuple[CoreState, Follower]:
    role = follower()
    core = core_of(role)
    core.requests.begin_flight(InFlight(peer, Purpose.FETCH, due_ms, 5, ticket=0))
    core.registration.basis = core.voters.latest
    return core, role


def test_it_waits_until_its_earliest_deadline() -> None:
    core, role = waiting()
    assert follower_deadline(core, role) == LATER_MS
    role.fetch_deadline_ms = DUE_MS
    assert follower_deadline(core, role) == DUE_MS
    role.campaign_at_ms = DUE_MS - 1
    assert follower_deadline(core, role) == DUE_MS - 1
    core.is_voter = False
    assert follower_deadline(core, role) == LATER_MS


@pytest.mark.parametrize(
    "begin",
    [
        lambda core: core.requests.end_flight(),
        lambda core: setattr(core, "relay", Relay(1)),
        lambda core: core.forwarded.add(ForwardedRead(1, LATER_MS)),
        lambda core: setattr(core.following, "download", Download(SNAPSHOT, EPOCH)),
        lambda core: setattr(core.following, "sealed_snapshot", SealedSnapshot(SNAPSHOT, (), 100)),
        lambda core: core.registration.forget(),
        lambda core: core.voters.add(7, VoterSet((voter(2),))),
        lambda core: setattr(core.registration, "change", ChangeKind.UPDATE),
    ],
    ids=["no-fetch", "relay", "read", "download", "sealed", "forgotten", "voters", "change"],
)
def test_it_takes_its_turn_if_something_is_to_be_done(begin: Callable[[CoreState], None]) -> None:
    core, role = waiting()
    begin(core)
    assert follower_deadline(core, role) <= NOW_MS


def test_without_a_deadline_no_tick_is_asked_for() -> None:
    """Method: an observer waits for its disk, which has stalled, before its Fetch leaves."""
    core, _ = waiting(NEVER_MS)
    core.is_voter = False
    node = RaftNode(config=core.config, cluster_id="cluster", me=core.me, rng=core.rng)
    node._core, node._is_started = core, True
    assert node.tick(NOW_MS).next_deadline_ms is None


@pytest.mark.parametrize(("due_ms", "expected"), [(LATER_MS, DUE_MS), (NEVER_MS, NEVER_MS)])
def test_a_search_that_has_left_ends_when_the_leader_may_be_asked(
    due_ms: int, expected: int
) -> None:
    core, role = waiting(due_ms, peer=3)
    core.following.peers.failed(LEADER, DUE_MS - core.config.retry_backoff_ms)
    assert follower_deadline(core, role) == expected

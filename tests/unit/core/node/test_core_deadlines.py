"""When the next tick is due, role by role and deadline by deadline.

Each case leaves one deadline that counts, so a deadline that is left out, or one too many, shows.
"""

from __future__ import annotations

from typing import Any

import pytest

from quorum.core.messages.fetch_messages import FetchRequest
from quorum.core.node.deadlines import next_deadline
from quorum.core.positions.download import Download
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS, HeldFetch
from quorum.core.state.peer_requests import InFlight, PeerRequest, Purpose
from quorum.core.state.peers import backoff_ms
from quorum.core.state.pending_change import ChangeKind
from quorum.core.state.roles import (
    Follower,
    Leader,
    Role,
    Transfer,
    Unattached,
)
from quorum.core.state.upstream import RelayPlan
from quorum.core.state.waiting_reads import ForwardedRead
from quorum.types import NO_NODE, NodeId, SnapshotId
from tests.support import bare_core
from tests.support.bare_core import LEADER, NOW_MS
from tests.support.core_disk import key

DUE_MS = 20_000
LATER_MS = 30_000
SERVER = 7
RELAY = 8


def core_of(role: Role, **given: Any) -> CoreState:
    """Node 1 in epoch 4 with committed voters; its log is empty, and it knows no leader."""
    return bare_core.core_of(role, leader_id=NO_NODE, log_end=0, **given)


def leader(core_voters: tuple[NodeId, ...] = (1, 2, 3), **fields: Any) -> CoreState:
    core = core_of(follower(), voters=core_voters)
    bare_core.lead(core, **{"can_write": False, **fields})
    return core


def follower(fetch_deadline_ms: int = NEVER_MS, **fields: Any) -> Follower:
    return bare_core.follower(LEADER, fetch_deadline_ms=fetch_deadline_ms, **fields)


def flight(peer: NodeId = LEADER, due_ms: int = DUE_MS) -> InFlight:
    return InFlight(peer, Purpose.FETCH, due_ms, 5, ticket=0)


def asking(core: CoreState, sent: InFlight) -> CoreState:
    core.requests.begin_flight(sent)
    return core


def not_ready(core: CoreState, *peers: NodeId, times: int = 1) -> int:
    """The peers failed now; when they may be asked again."""
    for peer in peers:
        for _ in range(times):
            core.following.peers.failed(peer, NOW_MS)
    return core.following.peers.ready_ms(peers[0])


def due(core: CoreState) -> int | None:
    """Return the next deadline. A follower with settled voters finds it in a shorter way."""
    found = next_deadline(core)
    core.registration.basis = core.voters.latest
    assert next_deadline(core) == found
    return found


# What is due in every role.


@pytest.mark.parametrize("kind", ["leader", "not yet leader", "follower", "unattached"])
@pytest.mark.parametrize("what", ["disk", "watermark", "digests", "nothing"])
def test_the_disk_and_the_digests_have_deadlines_in_every_role(kind: str, what: str) -> None:
    cores = {
        "leader": leader(),
        "not yet leader": leader(established=False),
        "follower": asking(core_of(follower()), flight(due_ms=NEVER_MS)),
        "unattached": asking(core_of(Unattached(NEVER_MS)), flight(due_ms=NEVER_MS)),
    }
    core = cores[kind]
    for value in (DUE_MS, DUE_MS + 1, NEVER_MS):
        match what:
            case "disk":
                core.disk.watch.check_due_ms = value
            case "watermark":
                core.disk.watermark_store_due_ms = value
            case "digests":
                core.chain.due_ms = value
            case _:
                value = NEVER_MS
        assert due(core) == (value if value < NEVER_MS else None)


@pytest.mark.parametrize("kind", ["leader", "follower"])
def test_the_earliest_of_the_common_deadlines_counts(kind: str) -> None:
    core = leader() if kind == "leader" else asking(core_of(follower()), flight(due_ms=NEVER_MS))
    core.disk.watch.check_due_ms = DUE_MS + 1
    core.disk.watermark_store_due_ms = DUE_MS + 2
    core.chain.due_ms = DUE_MS + 3
    assert due(core) == DUE_MS + 1
    core.chain.due_ms = DUE_MS
    assert due(core) == DUE_MS


@pytest.mark.parametrize(
    ("due_ms", "expected"),
    [(NOW_MS - 1, NOW_MS + 1), (NOW_MS, NOW_MS + 1), (NOW_MS + 1, NOW_MS + 1), (NOW_MS + 2,) * 2],
)
def test_a_tick_is_always_in_the_future(due_ms: int, expected: int) -> None:
    core = leader()
    core.chain.due_ms = due_ms
    assert due(core) == expected


# Leaders.


def transfer(deadline_ms: int) -> Transfer:
    return Transfer(key(2), 1, deadline_ms, PeerRequest(2, Purpose.TRANSFER))


@pytest.mark.parametrize("established", [False, True])
@pytest.mark.parametrize(
    "fields",
    [
        {"upkeep_due_ms": DUE_MS},
        {"membership_due_ms": DUE_MS},
        {"check_quorum_deadline_ms": DUE_MS},
        {"transfer": transfer(DUE_MS)},
        {"upkeep_due_ms": DUE_MS, "membership_due_ms": LATER_MS},
        {"upkeep_due_ms": DUE_MS, "check_quorum_deadline_ms": LATER_MS},
        {"upkeep_due_ms": DUE_MS, "transfer": transfer(LATER_MS)},
        {"upkeep_due_ms": LATER_MS, "membership_due_ms": DUE_MS},
        {"upkeep_due_ms": LATER_MS, "check_quorum_deadline_ms": DUE_MS},
        {"upkeep_due_ms": LATER_MS, "transfer": transfer(DUE_MS)},
    ],
)
def test_a_leader_has_the_earliest_of_its_deadlines(
    fields: dict[str, Any], established: bool
) -> None:
    """Before it is established it acts on nothing but its disk."""
    core = leader(established=established, **fields)
    assert due(core) == (DUE_MS if established else None)
    core.chain.due_ms = DUE_MS - 1
    assert due(core) == DUE_MS - 1


@pytest.mark.parametrize(("upkeep_ms", "expected"), [(LATER_MS, DUE_MS), (DUE_MS - 1, DUE_MS - 1)])
def test_a_held_fetch_is_answered_in_time(upkeep_ms: int, expected: int) -> None:
    core = leader(upkeep_due_ms=upkeep_ms)
    assert isinstance(core.role, Leader)
    request = FetchRequest(7, "cluster", key(2), 4, 0, 0)
    core.role.held.hold(HeldFetch(2, request, DUE_MS, is_voter=True))
    assert due(core) == expected


def test_a_lone_voter_needs_no_contact() -> None:
    assert due(leader((1,), check_quorum_deadline_ms=DUE_MS)) is None


# Followers.


@pytest.mark.parametrize("is_voter", [False, True])
@pytest.mark.parametrize(
    "role",
    [
        follower(DUE_MS),
        follower(campaign_at_ms=DUE_MS),
        follower(DUE_MS, campaign_at_ms=LATER_MS),
        follower(LATER_MS, campaign_at_ms=DUE_MS),
    ],
)
def test_only_a_voter_has_a_fetch_timer(role: Follower, is_voter: bool) -> None:
    core = core_of(role, voters=(1, 2, 3) if is_voter else (2, 3))
    asking(core, flight(due_ms=NEVER_MS))
    assert due(core) == (DUE_MS if is_voter else None)


@pytest.mark.parametrize(("change", "expected"), [(None, LATER_MS), (ChangeKind.UPDATE, DUE_MS)])
def test_a_self_registration_is_due_while_there_is_something_to_ask(
    change: ChangeKind | None, expected: int
) -> None:
    role = follower(LATER_MS)
    role.registration.due_ms = DUE_MS
    core = asking(core_of(role), flight(due_ms=NEVER_MS))
    core.registration.change = change
    assert due(core) == expected


@pytest.mark.parametrize(
    ("deadline_ms", "due_ms", "expected"),
    [(LATER_MS, DUE_MS, DUE_MS), (DUE_MS, LATER_MS, DUE_MS), (LATER_MS, NEVER_MS, LATER_MS)],
)
def test_a_fetch_that_has_left_is_given_up_in_time(
    deadline_ms: int, due_ms: int, expected: int
) -> None:
    assert due(asking(core_of(follower(deadline_ms)), flight(due_ms=due_ms))) == expected


@pytest.mark.parametrize("has_left", [False, True])
@pytest.mark.parametrize(("peer", "gives_way"), [(LEADER, False), (3, True), (SERVER, True)])
def test_a_search_gives_way_to_the_leader(peer: NodeId, gives_way: bool, has_left: bool) -> None:
    """Once the leader may be asked again, a request to somebody else is no longer waited for."""
    core = asking(core_of(follower(LATER_MS)), flight(peer, DUE_MS if has_left else NEVER_MS))
    ready_ms = not_ready(core, LEADER)
    expected = (ready_ms if gives_way else DUE_MS) if has_left else LATER_MS
    assert due(core) == expected


def test_without_a_fetch_under_way_the_leader_is_asked_at_once() -> None:
    core = core_of(follower(LATER_MS))
    assert due(core) == NOW_MS + 1


def test_a_leader_that_failed_is_asked_later_and_others_meanwhile() -> None:
    core = core_of(follower(LATER_MS), voters=(1, 2, 3))
    leader_ms = not_ready(core, LEADER, times=2)
    other_ms = not_ready(core, 3)
    assert other_ms < leader_ms
    assert due(core) == other_ms


def test_while_the_leader_may_be_asked_no_other_is() -> None:
    core = core_of(follower(LATER_MS), bootstrap=(SERVER,))
    core.following.peers.failed(LEADER, NOW_MS - 50_000)
    assert due(core) == NOW_MS + 1
    core = core_of(follower(LATER_MS), voters=(1, LEADER))
    assert due(core) == NOW_MS + 1
    assert due(core_of(follower(LATER_MS), voters=(1, LEADER))) == NOW_MS + 1


def test_of_a_waiting_leader_only_its_own_time_counts_without_others() -> None:
    core = core_of(follower(LATER_MS), voters=(1, LEADER))
    ready_ms = not_ready(core, LEADER)
    assert due(core) == ready_ms


@pytest.mark.parametrize("reads", [0, 1])
def test_a_forwarded_read_ends_in_time(reads: int) -> None:
    core = asking(core_of(follower(LATER_MS)), flight(due_ms=NEVER_MS))
    core.forwarded.request.due_ms = LATER_MS
    for _ in range(reads):
        core.forwarded.add(ForwardedRead(1, DUE_MS))
    assert due(core) == (DUE_MS if reads else LATER_MS)


# Downloads.


def downloading(voters: tuple[NodeId, ...] = (1, LEADER), **fields: Any) -> CoreState:
    core = core_of(follower(LATER_MS), voters=voters)
    download = Download(SnapshotId(5, 4), 4)
    for name, value in fields.items():
        setattr(download, name, value)
    core.following.download = download
    return core


def test_the_next_chunk_is_asked_for_at_once() -> None:
    assert due(downloading()) == NOW_MS + 1


@pytest.mark.parametrize("failed_ms", [None, NOW_MS])
def test_chunks_wait_for_the_disk(failed_ms: int | None) -> None:
    """Nobody else is asked meanwhile who leads, unless the leader may not be asked."""
    core = downloading((1, LEADER, 3))
    assert core.following.download is not None
    core.following.download.unwritten.extend(range(1, core.config.unwritten_chunks_max + 1))
    if failed_ms is not None:
        core.following.peers.failed(LEADER, failed_ms - backoff_ms(core.config, 1))
        assert core.following.peers.ready_ms(LEADER) == NOW_MS
    assert due(core) == LATER_MS


@pytest.mark.parametrize("has_failed", [False, True])
def test_while_a_file_is_sealed_the_leader_is_contacted_now_and_then(has_failed: bool) -> None:
    core = downloading(size=10, position=10, contact_due_ms=DUE_MS)
    assert core.following.download is not None
    assert core.following.download.is_complete
    if has_failed:
        assert not_ready(core, LEADER) < DUE_MS
    assert due(core) == DUE_MS


@pytest.mark.parametrize("epoch", [3, 5])
def test_a_download_of_another_epoch_holds_up_nothing(epoch: int) -> None:
    core = downloading(size=10, position=10, contact_due_ms=DUE_MS, epoch=epoch)
    assert due(core) == NOW_MS + 1


# Relays.


def test_an_observer_asks_its_relay_before_the_leader() -> None:
    core = core_of(follower(), voters=(2, 3), relays=RelayPlan(fetch_from=(RELAY,)))
    core.high_watermark = 1
    ready_ms = not_ready(core, RELAY)
    assert due(core) == ready_ms


def test_a_download_from_a_relay_waits_for_the_disk() -> None:
    core = core_of(follower(), voters=(2, 3), relays=RelayPlan(fetch_from=(RELAY,)))
    core.following.download = Download(SnapshotId(5, 4), 4)
    core.following.download.unwritten.extend(range(1, core.config.unwritten_chunks_max + 1))
    assert due(core) is None


def test_a_relay_has_the_deadlines_of_a_follower_and_its_own() -> None:
    core = core_of(follower(), voters=(2, 3), relays=RelayPlan(serves=True))
    core.high_watermark = 1
    asking(core, flight(due_ms=LATER_MS))
    assert due(core) == LATER_MS
    assert core.relay is not None
    request = FetchRequest(7, "cluster", key(9), 4, 0, 0)
    core.relay.held.hold(HeldFetch(9, request, DUE_MS, is_voter=False))
    core.following.upstream.confirmed_ms = LATER_MS
    assert due(core) == DUE_MS


@pytest.mark.parametrize("is_voter", [False, True])
def test_a_relay_that_is_a_voter_has_a_fetch_timer(is_voter: bool) -> None:
    voters = (1, 2, 3) if is_voter else (2, 3)
    for role in (follower(DUE_MS), follower(campaign_at_ms=DUE_MS)):
        core = core_of(role, voters=voters, relays=RelayPlan(serves=True))
        asking(core, flight(due_ms=NEVER_MS))
        assert due(core) == (DUE_MS if is_voter else None)


def test_a_search_of_a_relay_gives_way_to_the_leader() -> None:
    core = core_of(follower(), voters=(2, 3), relays=RelayPlan(serves=True))
    asking(core, flight(3))
    ready_ms = not_ready(core, LEADER)
    assert due(core) == ready_ms


@pytest.mark.parametrize("is_direct", [False, True])
def test_an_observer_whose_relays_are_silent_asks_the_leader(is_direct: bool) -> None:
    core = core_of(follower(), voters=(2, 3), relays=RelayPlan(fetch_from=(RELAY,)))
    relay_ms = not_ready(core, RELAY)
    core.following.upstream.is_direct = is_direct
    core.following.upstream.retry_ms = LATER_MS
    assert due(core) == (NOW_MS + 1 if is_direct else relay_ms)

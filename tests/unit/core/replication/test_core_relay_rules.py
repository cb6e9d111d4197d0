"""When a relay serves, what it keeps of each request, and its periodic work, rule by rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from quorum.core.messages.fetch_messages import FetchRequest, ReceivedFetchRequest
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest, ServeChunk
from quorum.core.positions.download import RESTING, Download
from quorum.core.replication.relay_serving import (
    is_serving,
    on_fetch,
    on_fetch_snapshot,
    poll_relay,
    serves_as_relay,
)
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import HeldFetch
from quorum.core.state.relay_table import Relay
from quorum.core.state.replica_progress import ReplicaProgress
from quorum.core.state.roles import Role, Unattached
from quorum.core.state.timers import Timer
from quorum.core.state.upstream import RelayPlan
from quorum.errors import ErrorCode
from quorum.types import OffsetAndEpoch
from tests.support.bare_core import (
    CLUSTER,
    EPOCH,
    LOG_END,
    NOW_MS,
    core_of,
    follower,
    leading,
    sent,
)
from tests.support.core_disk import key

RELAY = RelayPlan(serves=True)
COMMITTED = LOG_END - 5
SNAPSHOT = OffsetAndEpoch(30, EPOCH)
REQUEST = FetchRequest(7, CLUSTER, key(8), EPOCH, 20, EPOCH, max_wait_ms=100)
CHUNK = FetchSnapshotRequest(7, CLUSTER, key(8), EPOCH, SNAPSHOT, 0, 100)


def relay_of(role: Role | None = None, **of_core: Any) -> tuple[CoreState, Relay]:
    """A relay that is no voter, whose leader has just answered it."""
    role = follower(has_fetched=True) if role is None else role
    core = core_of(role, **{"voters": (2, 3), "relays": RELAY, **of_core})
    core.high_watermark = COMMITTED
    core.snapshots.add(SNAPSHOT, 500, now_ms=0)
    core.following.upstream.confirm((), EPOCH, NOW_MS)
    assert core.relay is not None
    return core, core.relay


def fetch(core: CoreState, relay: Relay, **fields: Any) -> None:
    request = replace(REQUEST, **fields)
    on_fetch(core, relay, request.replica.id, ReceivedFetchRequest(request, is_proven=True))


def below(node_id: int, offset: int, live_since_ms: int = NOW_MS) -> ReplicaProgress:
    progress = ReplicaProgress(key(node_id), is_voter=False, live_since_ms=live_since_ms)
    progress.end_offset = offset
    return progress


# Whether it serves.


def test_a_relay_that_votes_or_leads_serves_as_a_voter_or_leader() -> None:
    assert serves_as_relay(core_of(follower(), voters=(2, 3), relays=RELAY))
    assert not serves_as_relay(core_of(follower(), voters=(1, 2), relays=RELAY))
    core, _ = leading(relays=RELAY)
    core.is_voter = False
    assert not serves_as_relay(core)


def test_a_relay_serves_while_its_leader_is_known_to_lead() -> None:
    core, _ = relay_of()
    assert is_serving(core)
    core.now_ms = NOW_MS + core.config.relay_age_max_ms
    assert is_serving(core)
    core.now_ms += 1
    assert not is_serving(core)


@pytest.mark.parametrize("role", [follower(), Unattached(NOW_MS)])
def test_a_relay_without_an_answer_of_its_leader_does_not_serve(role: Role) -> None:
    assert not is_serving(relay_of(role)[0])


@pytest.mark.parametrize("epoch", [EPOCH - 1, EPOCH + 1])
def test_a_relay_does_not_serve_by_an_answer_of_another_epoch(epoch: int) -> None:
    core, _ = relay_of()
    core.following.upstream.confirm((), epoch, NOW_MS)
    assert not is_serving(core)


def test_a_relay_whose_log_is_about_to_be_replaced_does_not_serve() -> None:
    core, _ = relay_of()
    core.following.download = Download(SNAPSHOT, RESTING)
    assert not is_serving(core)


# What it keeps of a request.


def test_a_request_is_a_sign_of_life() -> None:
    core, relay = relay_of()
    fetch(core, relay)
    core.now_ms += 50
    fetch(core, relay, request_id=8)
    assert relay.downstream[key(8)].live_since_ms == NOW_MS + 50
    core.now_ms += 50
    on_fetch_snapshot(core, relay, 8, CHUNK)
    assert relay.downstream[key(8)].live_since_ms == NOW_MS + 100


@pytest.mark.parametrize(
    ("offset", "caught_up_ms", "end_offset"),
    [
        (COMMITTED - 1, -1, COMMITTED - 1),
        (COMMITTED, NOW_MS, COMMITTED),
        # It fetched from the leader before; its position is not known to be in this log.
        (COMMITTED + 1, -1, -1),
    ],
)
def test_an_observer_has_caught_up_at_what_is_committed_here(
    offset: int, caught_up_ms: int, end_offset: int
) -> None:
    core, relay = relay_of()
    fetch(core, relay, fetch_offset=offset)
    progress = relay.downstream[key(8)]
    assert progress.last_fetch_ms == NOW_MS
    assert progress.last_caught_up_ms == caught_up_ms
    assert progress.end_offset == end_offset


def test_an_observer_that_lags_caught_up_at_its_fetch_before() -> None:
    """Method: it has what was committed at its previous Fetch, and no more."""
    core, relay = relay_of()
    fetch(core, relay, fetch_offset=COMMITTED - 1)
    core.high_watermark = LOG_END
    core.now_ms += 50
    fetch(core, relay, fetch_offset=COMMITTED, request_id=8)
    assert relay.downstream[key(8)].last_caught_up_ms == NOW_MS


@pytest.mark.parametrize(("node_id", "low"), [(8, 20), (9, 10)])
def test_an_observer_that_downloads_needs_the_log_from_the_snapshot_on(
    node_id: int, low: int
) -> None:
    """The report takes a lower position in at once."""
    core, relay = relay_of()
    relay.downstream = {key(9): below(9, 20)}
    relay.refresh()
    snapshot = OffsetAndEpoch(10 if node_id == 9 else 25, EPOCH)
    core.snapshots.add(snapshot, 500, now_ms=0)
    relay.downstream[key(9)].end_offset = 5 if node_id == 9 else 20
    request = replace(CHUNK, replica=key(node_id), snapshot_id=snapshot)
    on_fetch_snapshot(core, relay, node_id, request)
    assert relay.downstream[key(node_id)].download_end == snapshot.offset
    assert relay.subtree is not None
    assert relay.subtree.low == low
    (chunk,) = sent(core, node_id)
    assert isinstance(chunk, ServeChunk)


def test_the_first_download_is_in_the_report_at_once() -> None:
    core, relay = relay_of()
    on_fetch_snapshot(core, relay, 8, CHUNK)
    assert relay.subtree is not None
    assert (relay.subtree.low, relay.subtree.members) == (SNAPSHOT.offset, 1)


# What it does now and then.


@pytest.mark.parametrize("upkeep_due_ms", [0, NOW_MS - 1, NOW_MS, NOW_MS + 1])
@pytest.mark.parametrize("has_observers", [True, False])
def test_a_relay_counts_its_subtree_anew_every_second(
    upkeep_due_ms: int, has_observers: bool
) -> None:
    """The first count of a process run, and one without anybody, was no timer's."""
    core, relay = relay_of()
    relay.upkeep_due_ms = upkeep_due_ms
    if has_observers:
        relay.downstream = {key(8): below(8, 20)}
    poll_relay(core, relay)
    is_due = upkeep_due_ms <= NOW_MS
    assert (relay.subtree is not None) == (is_due and has_observers)
    assert relay.upkeep_due_ms == (NOW_MS + 1_000 if is_due else upkeep_due_ms)
    fires = is_due and has_observers and upkeep_due_ms > 0
    assert core.timers_fired[Timer.RELAY_UPKEEP] == fires


@pytest.mark.parametrize(("more_ms", "is_known"), [(0, True), (1, False)])
def test_a_silent_observer_is_forgotten(more_ms: int, is_known: bool) -> None:
    core, relay = relay_of()
    relay.upkeep_due_ms = NOW_MS
    live_since_ms = NOW_MS - core.config.observer_session_ms - more_ms
    relay.downstream = {key(8): below(8, 20, live_since_ms)}
    poll_relay(core, relay)
    assert (key(8) in relay.downstream) == is_known
    assert core.timers_fired[Timer.OBSERVER_SESSION] == (not is_known)


@pytest.mark.parametrize("why", ["voter", "age", "epoch"])
def test_held_fetches_are_refused_when_the_relay_serves_no_more(why: str) -> None:
    core, relay = relay_of()
    relay.upkeep_due_ms = NOW_MS + 10_000
    waiting = replace(REQUEST, fetch_offset=COMMITTED, high_watermark=COMMITTED)
    relay.held.hold(HeldFetch(8, waiting, NOW_MS + 10_000, is_voter=False))
    poll_relay(core, relay)
    assert len(relay.held) == 1
    match why:
        case "voter":
            core.is_voter = True
        case "age":
            core.now_ms += core.config.relay_age_max_ms + 1
        case _:
            core.following.upstream.epoch = EPOCH - 1
    poll_relay(core, relay)
    assert len(relay.held) == 0
    (refusal,) = sent(core, 8)
    assert getattr(refusal, "error", None) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert core.timers_fired[Timer.RELAY_AGE] == (why == "age")

"""What each local event changes at once, before the role's next turn."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from quorum.core.contract.events import (
    DamageSuspected,
    DownloadEnded,
    LeaderLost,
    LogStartAdvanced,
    TransferEnded,
)
from quorum.core.contract.local_events import (
    AddVoter,
    ConnectionRefused,
    DamageFound,
    FeatureLevels,
    LeaseChanged,
    ListenerEndpoints,
    LocalEvent,
    LogVerified,
    RemoveVoter,
    ReplayStopped,
    RequestFailed,
    Resign,
    ShutDown,
    SnapshotCreated,
    SnapshotRejected,
    SnapshotRemoved,
    SnapshotSealed,
    TransferLeadership,
    UpdateVoter,
)
from quorum.core.contract.output import AdvanceLogStart, RequestSettled
from quorum.core.messages.received_records import VotersAt
from quorum.core.node.local_event_handlers import on_local_event
from quorum.core.positions.download import Download
from quorum.core.positions.log_view import LogView
from quorum.core.state.chain_state import DigestRequest, DivergenceResolution, Stage
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.peer_requests import InFlight, PeerRequest, Purpose
from quorum.core.state.pending_change import ChangeKind, LocalAsker, PendingChange
from quorum.core.state.roles import Ballot, Follower, Leader, Prospective, Resigned, Transfer
from quorum.errors import ErrorCode, QuorumUsageError
from quorum.types import LOG_BEGINNING, Endpoint, EpochStart, OffsetAndEpoch, SnapshotId
from tests.support.core_disk import key, voter
from tests.unit.core.node.test_core_deadlines import (
    DUE_MS,
    LEADER,
    NOW_MS,
    core_of,
    flight,
    follower,
    leader,
)

SNAPSHOT = SnapshotId(5, 4)
REQUEST_ID = 70


class Lowest(random.Random):
    """Draws the lowest of what is allowed; ``Highest`` the highest."""

    def randint(self, a: int, b: int) -> int:
        assert b > a
        return a


class Highest(random.Random):
    def randint(self, a: int, b: int) -> int:
        return b


def with_log(core: CoreState, end: int = 9, *, committed: int = 6) -> CoreState:
    core.log = LogView(LOG_BEGINNING, OffsetAndEpoch(end, 4), (EpochStart(4, 0),))
    core.high_watermark = committed
    return core


def names(core: CoreState) -> list[str]:
    return [type(each).__name__ for each in core.out.events]


def test_an_unknown_event_is_no_event() -> None:
    with pytest.raises(AssertionError):
        on_local_event(core_of(follower()), "news")  # type: ignore[arg-type]


# Peers.


@pytest.mark.parametrize("rng", [Lowest, Highest])
def test_a_refused_connection_to_the_leader_begins_a_campaign_soon(
    rng: Callable[[], random.Random],
) -> None:
    core = core_of(follower())
    core.rng = rng()
    on_local_event(core, ConnectionRefused(LEADER))
    assert isinstance(core.role, Follower)
    wait_ms = 0 if rng is Lowest else core.config.lost_leader_jitter_ms
    assert core.role.campaign_at_ms == NOW_MS + wait_ms
    assert names(core) == [LeaderLost.__name__]


@pytest.mark.parametrize(
    ("core", "peer"),
    [
        (core_of(follower()), 3),
        (core_of(Resigned(NEVER_MS, (), {})), LEADER),
        (leader(), 1),
    ],
)
def test_a_refused_connection_to_another_says_nothing(core: CoreState, peer: int) -> None:
    on_local_event(core, ConnectionRefused(peer))
    assert not names(core)
    assert not isinstance(core.role, Follower) or core.role.campaign_at_ms == NEVER_MS


def opened(core: CoreState, request: Any) -> CoreState:
    core.requests.open(request, REQUEST_ID)
    return core


def failed(core: CoreState, peer: int = LEADER, refusal: str = "") -> CoreState:
    on_local_event(core, RequestFailed(peer, REQUEST_ID, refusal))
    return core


@pytest.mark.parametrize("purpose", [Purpose.FETCH, Purpose.FETCH_SNAPSHOT])
@pytest.mark.parametrize(("peer", "counts"), [(LEADER, True), (3, False)])
def test_a_fetch_that_failed_makes_room_for_the_next(
    purpose: Purpose, peer: int, counts: bool
) -> None:
    core = core_of(follower())
    core.requests.begin_flight(InFlight(LEADER, purpose, DUE_MS, REQUEST_ID, ticket=0))
    failed(core, peer)
    assert (core.requests.in_flight is None) is counts
    assert core.following.peers.failures(LEADER) == counts


@pytest.mark.parametrize("purpose", [Purpose.VOTE, Purpose.END_EPOCH, Purpose.BOOTSTRAP])
def test_a_failed_request_is_due_again_after_a_pause(purpose: Purpose) -> None:
    request: PeerRequest = PeerRequest(LEADER, purpose, DUE_MS)
    if purpose is Purpose.VOTE:
        request = Ballot(LEADER, DUE_MS, voter=key(LEADER))
    core = failed(opened(core_of(Prospective(NEVER_MS, {}, fail_fast=False)), request))
    assert (request.request_id, request.failures) == (0, 1)
    assert NOW_MS < request.due_ms < DUE_MS
    assert core.requests.get(REQUEST_ID) is None


@pytest.mark.parametrize("purpose", [Purpose.SELF_REGISTRATION, Purpose.LEADER_SEARCH])
def test_a_failed_request_that_is_not_repeated_is_closed(purpose: Purpose) -> None:
    request = PeerRequest(LEADER, purpose, DUE_MS)
    core = failed(opened(core_of(follower()), request))
    assert core.requests.get(REQUEST_ID) is None
    assert (request.failures, request.due_ms) == (0, DUE_MS)


def test_a_failed_begin_quorum_epoch_brings_the_upkeep_forward() -> None:
    core = leader(upkeep_due_ms=DUE_MS)
    assert isinstance(core.role, Leader)
    begin = core.role.remote[LEADER].begin
    failed(opened(core, begin))
    assert core.role.upkeep_due_ms == begin.due_ms < DUE_MS


@pytest.mark.parametrize("refusal", ["", "another cluster"])
def test_a_failed_probe_keeps_why_the_replica_was_not_reached(refusal: str) -> None:
    change = PendingChange(ChangeKind.ADD, voter(4), LocalAsker(1))
    core = leader(change=change)
    change.probe.peer = 4
    failed(opened(core, change.probe), 4, refusal)
    assert (change.probe.failures, change.probe_refusal) == (1, refusal)


def test_a_transfer_to_an_unreachable_voter_ends() -> None:
    request = PeerRequest(LEADER, Purpose.TRANSFER)
    core = leader(transfer=Transfer(key(LEADER), 1, DUE_MS, request))
    assert TransferEnded.__name__ in names(failed(opened(core, request)))


def test_a_failed_request_for_a_position_is_repeated() -> None:
    core = core_of(follower())
    request = core.forwarded.request
    core.forwarded.asked, request.peer = 3, LEADER
    failed(opened(core, request))
    assert (core.forwarded.asked, request.failures) == (0, 1)


def test_a_failed_request_for_digests_is_repeated() -> None:
    core = core_of(follower())
    request = DigestRequest(LEADER, DUE_MS)
    core.chain.resolution = DivergenceResolution(
        LEADER, True, 9, 0, low=-1, high=9, stage=Stage.SEARCHING, requests={LEADER: request}
    )
    failed(opened(core, request))
    assert core.chain.due_ms == request.due_ms < DUE_MS


def test_a_lost_request_for_a_later_chunk_is_dropped() -> None:
    core = core_of(follower())
    core.requests.begin_flight(flight())
    core.requests.in_flight.behind = InFlight(
        LEADER, Purpose.FETCH_SNAPSHOT, DUE_MS, REQUEST_ID, ticket=0
    )
    failed(core)
    assert core.requests.in_flight is not None
    assert core.requests.in_flight.behind is None


@pytest.mark.interpreted
def test_a_request_for_nothing_known_cannot_fail() -> None:
    request = PeerRequest(LEADER, "no purpose")  # type: ignore[arg-type]
    with pytest.raises(AssertionError):
        failed(opened(core_of(follower()), request))


# Checkpoints.


@pytest.mark.parametrize(("committed", "is_refused"), [(4, True), (5, False), (6, False)])
def test_a_checkpoint_is_taken_of_committed_records_only(committed: int, is_refused: bool) -> None:
    core = with_log(core_of(follower()), committed=committed)
    if is_refused:
        with pytest.raises(QuorumUsageError, match="is beyond high watermark 4"):
            on_local_event(core, SnapshotCreated(SNAPSHOT, 70))
        assert not core.snapshots.ids
        return
    on_local_event(core, SnapshotCreated(SNAPSHOT, 70))
    found = core.snapshots.get(SNAPSHOT)
    assert found is not None
    assert (found.size, found.since_ms) == (70, NOW_MS)


@pytest.mark.parametrize(
    ("established", "is_trimmed"), [(True, True), (False, False), (None, False)]
)
def test_a_checkpoint_lets_a_leader_trim_its_log(
    established: bool | None, is_trimmed: bool
) -> None:
    """Method: no replica needs the records below it, as nobody has been there for long."""
    core = core_of(follower()) if established is None else leader(established=established)
    if isinstance(core.role, Leader):
        core.role.since_ms = -1_000_000
        for each in core.role.remote.values():
            each.live_since_ms = -1_000_000
    on_local_event(with_log(core), SnapshotCreated(SNAPSHOT, 70))
    assert (LogStartAdvanced(SNAPSHOT) in core.out.events) is is_trimmed


def test_a_sealed_checkpoint_waits_for_its_installation() -> None:
    core = core_of(follower())
    on_local_event(core, SnapshotSealed(SNAPSHOT, (VotersAt(3, (voter(1),)),), 70))
    assert core.following.sealed_snapshot is not None
    assert core.following.sealed_snapshot.size == 70


def test_a_rejected_checkpoint_ends_its_download() -> None:
    core = core_of(follower())
    core.following.download = Download(SNAPSHOT, 4)
    on_local_event(core, SnapshotRejected(SNAPSHOT, "corrupt"))
    assert core.following.download is None
    assert names(core) == [DownloadEnded.__name__]


def test_a_removed_checkpoint_is_forgotten() -> None:
    core = core_of(follower())
    core.snapshots.add(SNAPSHOT, 70, now_ms=NOW_MS)
    on_local_event(core, SnapshotRemoved(SNAPSHOT))
    assert not core.snapshots.ids


def test_a_checkpoint_without_a_lease_is_deleted() -> None:
    core = core_of(follower())
    core.log = LogView(OffsetAndEpoch(8, 4), OffsetAndEpoch(8, 4), ())
    for snapshot_id in (SNAPSHOT, SnapshotId(8, 4)):
        core.snapshots.add(snapshot_id, 70, now_ms=NOW_MS)
    on_local_event(core, LeaseChanged((SNAPSHOT,)))
    assert core.snapshots.leased == (SNAPSHOT,)
    assert not core.out.persist
    on_local_event(core, LeaseChanged(()))
    assert core.out.persist == [AdvanceLogStart(OffsetAndEpoch(8, 4), (SNAPSHOT,))]
    assert core.snapshots.ids == (SnapshotId(8, 4),)


# This node.


def test_its_endpoints_are_compared_with_its_entry_anew() -> None:
    core = core_of(follower())
    core.registration.basis = core.voters.latest
    endpoints = (Endpoint("CONTROLLER", "here", 9),)
    on_local_event(core, ListenerEndpoints(endpoints))
    assert core.process.endpoints == endpoints
    assert core.registration.basis is None


def test_its_versions_are_advertised_from_now_on() -> None:
    core = core_of(follower())
    on_local_event(core, FeatureLevels((), {"metadata.version": 7}))
    assert core.process.versions.is_advertised
    assert [each.name for each in core.process.versions.supported] == ["kraft.version"]
    assert core.process.versions.in_force == {"metadata.version": 7}


def test_a_leader_whose_replay_stopped_resigns() -> None:
    core = leader()
    on_local_event(core, ReplayStopped("offset 7"))
    assert core.process.replay_stopped == "offset 7"
    assert isinstance(core.role, Resigned)


def test_verified_files_end_the_first_step_of_a_divergence() -> None:
    core = core_of(follower())
    found = DivergenceResolution(LEADER, True, 9, 0, low=-1, high=9)
    core.chain.resolution = found
    on_local_event(core, LogVerified(core.log.cuts))
    assert found.stage is Stage.SEARCHING


def test_damage_is_reported() -> None:
    core = core_of(follower())
    on_local_event(core, DamageFound("segment 7"))
    assert core.out.events == [DamageSuspected("segment 7", True)]


# Operators.


@pytest.mark.parametrize(
    "event", [AddVoter(7, voter(4)), RemoveVoter(7, key(3)), UpdateVoter(7, voter(3))]
)
def test_a_change_of_voters_is_answered_where_nobody_leads(event: LocalEvent) -> None:
    core = core_of(follower())
    on_local_event(core, event)
    (answer,) = core.out.progress
    assert isinstance(answer, RequestSettled)
    assert (answer.token, answer.error) == (7, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def test_a_transfer_is_answered_where_nobody_leads() -> None:
    core = core_of(follower())
    on_local_event(core, TransferLeadership(7))
    (answer,) = core.out.progress
    assert isinstance(answer, RequestSettled)
    assert (answer.token, answer.error) == (7, ErrorCode.NOT_LEADER_OR_FOLLOWER)


@pytest.mark.parametrize("event", [Resign(), ShutDown()])
def test_only_a_leader_resigns(event: LocalEvent) -> None:
    core = leader()
    on_local_event(core, event)
    assert isinstance(core.role, Resigned)
    core = core_of(follower())
    on_local_event(core, event)
    assert isinstance(core.role, Follower)
    assert core.process.is_shutting_down is isinstance(event, ShutDown)
    assert not core.out.events


@pytest.mark.parametrize("make", [leader, lambda: core_of(follower())])
def test_a_shutdown_stores_the_high_watermark_at_once(make: Callable[[], CoreState]) -> None:
    """Goal: what the tools know of a stopped node's directory includes all it answered."""
    core = make()
    core.disk.store_watermark_at(NOW_MS + 5_000)
    on_local_event(core, ShutDown())
    assert core.disk.watermark_store_due_ms == NOW_MS
    core.disk.watermark_store_due_ms = NEVER_MS
    on_local_event(core, ShutDown())
    assert core.disk.watermark_store_due_ms == NEVER_MS

"""A leadership term step by step: its beginning, what is due in it, and when it ends."""

from __future__ import annotations

from typing import Any

import pytest

from quorum.control_records import KRaftVersion, LeaderChange, Voters
from quorum.core.contract.events import RoleChanged, VoterSetChanged
from quorum.core.contract.output import AbandonDownload, AdvanceLogStart, Append, LeadershipChanged
from quorum.core.contract.reasons import RoleChangeReason
from quorum.core.leadership.leadership_term import (
    establish,
    leadership_is_durable,
    opening_records,
    poll_leader,
    resign,
    resign_if_replay_stopped,
)
from quorum.core.messages.epoch_messages import BeginQuorumEpochRequest
from quorum.core.messages.fetch_messages import FetchRequest
from quorum.core.positions.download import Download
from quorum.core.positions.snapshot_index import SnapshotIndex
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS, HeldFetch
from quorum.core.state.peer_requests import Purpose
from quorum.core.state.pending_change import ChangeKind, PendingChange
from quorum.core.state.replica_progress import VERSIONS_KNOWN_MS, ReplicaProgress
from quorum.core.state.roles import Leader, Resigned
from quorum.core.state.timers import Timer
from quorum.core.voters.voter_set import VoterSet
from quorum.types import Endpoint, EpochStart, SnapshotId, Voter
from tests.support.bare_core import (
    CLUSTER,
    EPOCH,
    LOG_END,
    NOW_MS,
    core_of,
    follower,
    leading,
    progress,
    reported,
    sent_of,
)
from tests.support.core_disk import key, voter

SNAPSHOT = SnapshotId(50, EPOCH)
ELSEWHERE = key(9)
PERIOD_MS = 1_000


def elected(**of_core: Any) -> tuple[CoreState, Leader]:
    """Node 1 has won its epoch; the leadership is on its disk, but it has not begun."""
    core, role = leading(**of_core)
    role.established, role.can_write = False, False
    role.remote, role.epoch_start = {}, LOG_END
    return core, role


def settled(**of_core: Any) -> tuple[CoreState, Leader]:
    """Node 1 leads; nothing is due, everybody has fetched and has said what it supports."""
    core, role = leading(**{"high_watermark": LOG_END, "removed": (ELSEWHERE,), **of_core})
    core.process.endpoints = voter(1).endpoints
    for each in role.remote.values():
        each.begin.due_ms = NOW_MS + 1
        each.last_fetch_ms = each.live_since_ms = each.supported_ms = NOW_MS
    role.upkeep_due_ms = NOW_MS
    return core, role


def reasons(core: CoreState) -> list[RoleChangeReason]:
    return [each.reason for each in reported(core, RoleChanged)]


def appended(core: CoreState) -> list[Append]:
    return [each for each in core.out.persist if isinstance(each, Append)]


def asked(core: CoreState) -> list[int]:
    """The voters that a BeginQuorumEpoch leaves for."""
    return [to for to, _ in sent_of(core, BeginQuorumEpochRequest)]


# Its beginning.


@pytest.mark.parametrize(("durable", "expected"), [(2, False), (3, True), (4, True)])
def test_a_leadership_begins_when_it_is_durable(durable: int, expected: bool) -> None:
    core, role = elected()
    role.durable_with, core.disk.durable_ticket = 3, durable
    assert leadership_is_durable(core, role) is expected
    poll_leader(core, role)
    assert role.established is expected
    assert bool(appended(core)) is expected
    assert asked(core) == ([2, 3] if expected else [])


@pytest.mark.parametrize("is_established", [False, True])
def test_a_leader_whose_replay_has_stopped_does_not_begin(is_established: bool) -> None:
    """One that has begun is told by the event."""
    core, role = settled() if is_established else elected()
    core.process.replay_stopped = "record 7"
    poll_leader(core, role)
    assert reasons(core) == ([] if is_established else [RoleChangeReason.REPLAY_STOPPED])
    assert role.established is is_established
    assert not appended(core)


def test_a_leader_announces_itself_to_every_voter_and_counts_anew() -> None:
    core, role = elected()
    role.check_quorum_deadline_ms = NEVER_MS
    establish(core, role)
    assert role.established
    assert role.check_quorum_deadline_ms == NOW_MS + core.config.check_quorum_ms
    assert role.upkeep_due_ms == NOW_MS + PERIOD_MS
    assert (list(role.remote), role.others_needed) == ([2, 3], 1)
    announced = LeadershipChanged(1, EPOCH, is_leader=True, can_write=False)
    assert progress(core, LeadershipChanged) == [announced]
    ((_, first), _) = sent_of(core, BeginQuorumEpochRequest)
    request_id = role.remote[2].begin.request_id
    expected = BeginQuorumEpochRequest(
        request_id, CLUSTER, key(2), key(1), EPOCH, voter(1).endpoints
    )
    assert first == expected
    assert not core.timers_fired


@pytest.mark.parametrize("is_downloading", [False, True])
def test_a_leader_needs_no_download(is_downloading: bool) -> None:
    core, role = elected()
    if is_downloading:
        core.following.download = Download(SNAPSHOT, EPOCH)
    establish(core, role)
    abandoned = [each for each in core.out.persist if isinstance(each, AbandonDownload)]
    assert abandoned == ([AbandonDownload(SNAPSHOT)] if is_downloading else [])
    assert core.following.download is None


@pytest.mark.parametrize(("voters_at", "has_voters"), [(-1, True), (0, False), (1, False)])
def test_the_first_records_of_an_epoch(voters_at: int, has_voters: bool) -> None:
    """Voters that only the bootstrap checkpoint has are written, and are in force by that."""
    core, role = elected(voters_at=voters_at, removed=(ELSEWHERE,))
    role.granting = (1, 3)
    voters = core.voters.latest
    controls: tuple[Any, ...] = (LeaderChange(1, (1, 2, 3), (1, 3)),)
    if has_voters:
        controls += KRaftVersion(1), Voters(voters.voters, removed=(ELSEWHERE,))
    assert opening_records(core, role) == controls
    establish(core, role)
    end = LOG_END + len(controls)
    epochs = (EpochStart(EPOCH, LOG_END),)
    assert appended(core) == [Append(LOG_END, end, EPOCH, controls=controls, epochs=epochs)]
    assert core.log.end_offset == end
    assert core.voters.latest == voters
    assert core.voters.latest_offset == (end - 1 if has_voters else voters_at)
    changes = [VoterSetChanged(end - 1, (1, 2, 3))] if has_voters else []
    assert reported(core, VoterSetChanged) == changes


# Its duties.


def test_while_nothing_is_due_a_leader_does_nothing() -> None:
    core, role = settled()
    role.upkeep_due_ms = role.check_quorum_deadline_ms = NOW_MS + 1
    poll_leader(core, role)
    assert (core.role, core.out.events, asked(core)) == (role, [], [])
    assert not core.timers_fired


@pytest.mark.parametrize(
    ("voters", "left_ms", "resigns"),
    [((1, 2, 3), 0, True), ((1, 2, 3), 1, False), ((1,), 0, False)],
)
def test_a_leader_without_a_majority_resigns(
    voters: tuple[int, ...], left_ms: int, resigns: bool
) -> None:
    core, role = settled(voters=voters)
    role.check_quorum_deadline_ms = NOW_MS + left_ms
    poll_leader(core, role)
    assert reasons(core) == ([RoleChangeReason.QUORUM_LOST] if resigns else [])
    assert core.timers_fired[Timer.CHECK_QUORUM] == resigns
    assert core.timers_fired[Timer.UPKEEP] == (not resigns)


@pytest.mark.parametrize(
    ("left_ms", "is_voter", "resigns"), [(0, False, True), (1, False, False), (0, True, False)]
)
def test_a_removed_leader_resigns_when_its_removal_is_committed(
    left_ms: int, is_voter: bool, resigns: bool
) -> None:
    core, role = settled(voters=(1, 2, 3) if is_voter else (2, 3))
    role.membership_due_ms = NOW_MS + left_ms
    poll_leader(core, role)
    assert reasons(core) == ([RoleChangeReason.REMOVED] if resigns else [])
    assert core.timers_fired[Timer.UPKEEP] == (not resigns)


def test_a_change_of_the_voters_ends_when_it_is_due() -> None:
    core, role = settled()
    role.change = PendingChange(ChangeKind.REMOVE, Voter(key(3)), None, NOW_MS, offset=LOG_END)
    role.membership_due_ms = NOW_MS + 1
    poll_leader(core, role)
    assert role.change is not None
    role.membership_due_ms = NOW_MS
    poll_leader(core, role)
    assert role.change is None


@pytest.mark.parametrize(("left_ms", "is_answered"), [(0, True), (1, False)])
def test_a_held_fetch_is_answered_when_its_wait_is_over(left_ms: int, is_answered: bool) -> None:
    core, role = settled()
    fetch = FetchRequest(21, CLUSTER, key(2), EPOCH, LOG_END, EPOCH, LOG_END)
    role.held.hold(HeldFetch(2, fetch, NOW_MS + left_ms, is_voter=True))
    poll_leader(core, role)
    assert len(role.held) == (not is_answered)
    assert core.timers_fired[Timer.HELD_FETCH] == is_answered


def test_a_leader_resigns_in_favour_of_the_longest_log() -> None:
    core, role = settled()
    role.remote[3].end_offset = 7
    resign(core, role, RoleChangeReason.SHUT_DOWN)
    assert isinstance(core.role, Resigned)
    assert core.role.preferred_successors == (key(3), key(2))
    assert reasons(core) == [RoleChangeReason.SHUT_DOWN]


@pytest.mark.parametrize(("leads", "why"), [(True, ""), (False, "record 7"), (True, "record 7")])
def test_only_a_leader_resigns_because_its_replay_has_stopped(leads: bool, why: str) -> None:
    core = settled()[0] if leads else core_of(follower())
    core.process.replay_stopped = why
    resign_if_replay_stopped(core)
    stops = bool(leads and why)
    assert reasons(core) == ([RoleChangeReason.REPLAY_STOPPED] if stops else [])


# Upkeep.


@pytest.mark.parametrize(
    ("known", "is_asked"),
    [
        ({}, False),
        ({"last_fetch_ms": 0}, False),
        ({"last_fetch_ms": -1}, True),
        ({"live_since_ms": NOW_MS - PERIOD_MS + 1}, False),
        ({"live_since_ms": NOW_MS - PERIOD_MS}, True),
        ({"supported_ms": NOW_MS - VERSIONS_KNOWN_MS + 1}, False),
        ({"supported_ms": NOW_MS - VERSIONS_KNOWN_MS}, True),
    ],
)
@pytest.mark.parametrize("left_ms", [0, 1])
def test_which_voters_are_reminded(known: dict[str, int], is_asked: bool, left_ms: int) -> None:
    """One that is silent, has not fetched, or has not said for long what it supports; but only
    when it is time to look after it.
    """
    core, role = settled()
    replica = role.remote[2]
    for name, content in known.items():
        setattr(replica, name, content)
    replica.begin.due_ms = NOW_MS + left_ms
    role.remote[3].begin.due_ms = NOW_MS + 500
    poll_leader(core, role)
    is_due = left_ms == 0
    assert asked(core) == ([2] if is_asked and is_due else [])
    assert replica.begin.due_ms == NOW_MS + (PERIOD_MS if is_due else 1)
    assert role.upkeep_due_ms == min(replica.begin.due_ms, NOW_MS + 500)
    assert core.timers_fired[Timer.UPKEEP] == 1


@pytest.mark.parametrize(
    ("fetch_timeout_ms", "period_ms"), [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2)]
)
@pytest.mark.parametrize("voters", [(1, 2), (1,)])
def test_upkeep_comes_twice_in_a_fetch_timeout(
    voters: tuple[int, ...], fetch_timeout_ms: int, period_ms: int
) -> None:
    core, role = settled(voters=voters, fetch_timeout_ms=fetch_timeout_ms)
    for each in role.remote.values():
        each.begin.due_ms = NOW_MS
    poll_leader(core, role)
    assert role.upkeep_due_ms == NOW_MS + period_ms


@pytest.mark.parametrize(
    ("due_ms", "failures", "request_id", "timer"),
    [
        (0, 0, 0, None),
        (0, 1, 0, None),
        (NOW_MS, 0, 0, Timer.BEGIN_QUORUM),
        (NOW_MS, 0, 5, Timer.BEGIN_QUORUM),
        (NOW_MS, 1, 5, Timer.BEGIN_QUORUM),
        (NOW_MS, 1, 0, (Timer.RETRY_BACKOFF, Purpose.BEGIN_EPOCH)),
    ],
)
def test_a_reminder_is_counted_as_what_it_waited_for(
    due_ms: int, failures: int, request_id: int, timer: Any
) -> None:
    """The first request of a term for nothing, a failed one for its pause, others for silence."""
    core, role = settled()
    role.remote[2].last_fetch_ms = -1
    begin = role.remote[2].begin
    begin.due_ms, begin.failures = due_ms, failures
    if request_id:
        core.requests.open(begin, request_id)
    poll_leader(core, role)
    assert asked(core) == [2]
    expected = {Timer.UPKEEP} if timer is None else {Timer.UPKEEP, timer}
    assert set(core.timers_fired) == expected


def test_upkeep_forgets_silent_observers() -> None:
    core, role = settled()
    core.now_ms = NOW_MS + core.config.observer_session_ms
    role.check_quorum_deadline_ms = NEVER_MS
    for number, since_ms in ((11, NOW_MS - 1), (12, NOW_MS)):
        role.observers[key(number)] = ReplicaProgress(
            key(number), is_voter=False, live_since_ms=since_ms
        )
    poll_leader(core, role)
    assert list(role.observers) == [key(12)]


def test_upkeep_trims_the_log() -> None:
    core, role = settled()
    core.snapshots = SnapshotIndex([SnapshotId(20, EPOCH)], now_ms=NOW_MS)
    for each in role.remote.values():
        each.end_offset = LOG_END
    role.since_ms = NOW_MS - core.config.observer_session_ms - 1
    poll_leader(core, role)
    (trim,) = [each for each in core.out.persist if isinstance(each, AdvanceLogStart)]
    assert trim.start.offset == 20


def test_upkeep_keeps_the_leaders_own_entry_true() -> None:
    entries = [voter(each) for each in (1, 2, 3)]
    core, role = settled()
    core.process.endpoints = (Endpoint("CONTROLLER", "moved", 1),)
    core.voters.add(0, VoterSet(entries))
    poll_leader(core, role)
    found = core.voters.latest.get(1)
    assert found is not None
    assert found.endpoints == core.process.endpoints

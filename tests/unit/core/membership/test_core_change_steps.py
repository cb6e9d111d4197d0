"""A change of the voter set step by step: probe, voters record, commit, and each way to end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from quorum.control_records import Voters
from quorum.core.contract.events import VoterChangeEnded, VoterSetChanged
from quorum.core.contract.output import Append, PeerEndpoints, RequestSettled, VotersChanged
from quorum.core.membership.voter_changes import (
    begin,
    on_probe_failed,
    on_probe_response,
    pending_view,
    poll_change,
)
from quorum.core.messages.epoch_messages import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from quorum.core.protocol.requests import next_attempt
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.peer_requests import PeerRequest, Purpose
from quorum.core.state.pending_change import ChangeKind, LocalAsker, PendingChange
from quorum.core.state.replica_progress import ReplicaProgress
from quorum.core.state.roles import Follower, Leader, Transfer, Unattached
from quorum.core.state.timers import Timer
from quorum.core.voters.voter_set import VoterSet
from quorum.errors import ErrorCode
from quorum.types import Endpoint, ReplicaKey, VersionRange, Voter
from tests.support.bare_core import EPOCH, NOW_MS, progress, reported, sent_of
from tests.support.core_disk import key, voter
from tests.unit.core.membership.test_core_change_begin import END, built, leading

KRAFT = VersionRange("kraft.version", 0, 1)
MOVED = replace(voter(3), endpoints=(Endpoint("CONTROLLER", "moved", 1),))
ELSEWHERE = ReplicaKey(4, bytes(15) + b"x")
BACKOFF_MS = built().config.retry_backoff_ms
DUE_MS = NOW_MS + 1_000


def fetching(**fields: Any) -> ReplicaProgress:
    times = {"last_fetch_ms": NOW_MS, "last_caught_up_ms": NOW_MS, **fields}
    return ReplicaProgress(key(4), is_voter=False, live_since_ms=NOW_MS, **times)


def change(kind: ChangeKind, entry: Voter, **fields: Any) -> PendingChange:
    return PendingChange(kind, entry, LocalAsker(7), **{"deadline_ms": DUE_MS, **fields})


def probing(core: CoreState, asked: PendingChange, **fields: Any) -> Leader:
    """Node 1 leads and waits for the answer to its probe; node 4 has caught up."""
    role = leading(core, **{"observers": {key(4): fetching()}, "change": asked, **fields})
    next_attempt(core, asked.probe)
    asked.probe.due_ms = NEVER_MS
    return role


def answer(**fields: Any) -> BeginQuorumEpochResponse:
    given = {"error": ErrorCode.NONE, "leader_id": 1, "epoch": EPOCH, "supported": (KRAFT,)}
    return BeginQuorumEpochResponse(9, **{**given, **fields})


def respond(core: CoreState, role: Leader, response: BeginQuorumEpochResponse) -> None:
    """As ``on_begin_response``, which has closed the request."""
    assert role.change is not None
    core.requests.close(role.change.probe)
    on_probe_response(core, role, role.change.voter.key.id, response)


def records(core: CoreState) -> list[Voters]:
    appends = [each for each in core.out.persist if isinstance(each, Append)]
    return [each for append in appends for each in append.controls if isinstance(each, Voters)]


def settled(core: CoreState) -> list[tuple[ErrorCode, int]]:
    return [(each.error, each.offset) for each in progress(core, RequestSettled)]


# Probing.


@pytest.mark.parametrize("kind", [ChangeKind.ADD, ChangeKind.UPDATE])
def test_the_right_answer_to_the_probe_puts_the_change_in_force(kind: ChangeKind) -> None:
    """The entry gets the versions that the replica reports; the leader remembers them."""
    core = built()
    entry = voter(4) if kind is ChangeKind.ADD else MOVED
    supported = VersionRange("kraft.version", 0, 1 + (kind is ChangeKind.ADD))
    role = probing(core, change(kind, entry))
    respond(core, role, answer(supported=(supported,)))
    expected = replace(entry, max_supported_version=supported.highest)
    assert core.voters.latest.get(entry.key.id) == expected
    found = role.remote[entry.key.id]
    assert (found.supported, found.supported_ms) == ((supported,), NOW_MS)
    assert not settled(core)
    assert pending_view(core) is not None


def test_an_answer_after_the_change_has_ended_does_nothing() -> None:
    core = built()
    role = leading(core)
    on_probe_response(core, role, 4, answer())
    assert not core.out.events
    assert not core.out.persist


@pytest.mark.parametrize(
    ("response", "transfer", "observers", "error"),
    [
        (answer(error=ErrorCode.INVALID_VOTER_KEY), False, True, ErrorCode.REQUEST_TIMED_OUT),
        (answer(supported=()), False, True, ErrorCode.UNSUPPORTED_VERSION),
        (answer(supported=()), False, False, ErrorCode.UNSUPPORTED_VERSION),
        (answer(), True, True, ErrorCode.REQUEST_TIMED_OUT),
        (answer(), False, False, ErrorCode.REQUEST_TIMED_OUT),
    ],
)
def test_a_probe_with_the_wrong_answer_ends_the_change(
    response: BeginQuorumEpochResponse, transfer: bool, observers: bool, error: ErrorCode
) -> None:
    core = built()
    role = probing(core, change(ChangeKind.ADD, voter(4)))
    if transfer:
        role.transfer = Transfer(key(2), 0, NEVER_MS, PeerRequest(2, Purpose.TRANSFER))
    if not observers:
        role.observers.clear()
    respond(core, role, response)
    assert settled(core) == [(error, -1)]
    assert [each.error for each in reported(core, VoterChangeEnded)] == [error]
    assert pending_view(core) is None
    assert not records(core)
    assert not progress(core, PeerEndpoints)


def test_an_update_needs_no_caught_up_replica() -> None:
    core = built()
    role = probing(core, change(ChangeKind.UPDATE, MOVED), observers={})
    assert role.remote[3].last_caught_up_ms < 0
    respond(core, role, answer())
    assert core.voters.latest.get(3) == MOVED


@pytest.mark.parametrize("has_endpoints", [False, True])
def test_a_refused_update_restores_the_known_endpoints(has_endpoints: bool) -> None:
    known = voter(3) if has_endpoints else Voter(key(3))
    core = built(voters=(voter(1), voter(2), known))
    role = probing(core, change(ChangeKind.UPDATE, MOVED))
    respond(core, role, answer(error=ErrorCode.INVALID_VOTER_KEY))
    expected = [PeerEndpoints(3, known.endpoints)] if has_endpoints else []
    assert progress(core, PeerEndpoints) == expected
    assert pending_view(core) is None


@pytest.mark.parametrize("response", [answer(epoch=EPOCH - 1), answer(leader_id=2)])
def test_an_answer_that_is_not_of_this_leadership_is_asked_for_again(
    response: BeginQuorumEpochResponse,
) -> None:
    core = built()
    asked = change(ChangeKind.ADD, voter(4))
    role = probing(core, asked)
    respond(core, role, response)
    assert role.change is asked
    assert asked.probe.due_ms == role.membership_due_ms == NOW_MS + BACKOFF_MS
    assert not records(core)


def test_a_later_epoch_ends_the_change_with_the_leadership() -> None:
    core = built()
    role = probing(core, change(ChangeKind.ADD, voter(4)))
    respond(core, role, answer(epoch=EPOCH + 1, leader_id=-1))
    assert isinstance(core.role, Unattached)
    assert settled(core) == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]
    assert not records(core)


@pytest.mark.parametrize("due_ms", [NOW_MS + BACKOFF_MS - 1, NOW_MS + BACKOFF_MS + 1])
def test_a_failed_probe_is_sent_again_after_a_pause(due_ms: int) -> None:
    core = built()
    asked = change(ChangeKind.ADD, voter(4))
    role = probing(core, asked, membership_due_ms=due_ms)
    on_probe_failed(core, asked.probe, "another release")
    assert asked.probe_refusal == "another release"
    assert (asked.probe.request_id, asked.probe.failures) == (0, 1)
    assert asked.probe.due_ms == NOW_MS + BACKOFF_MS
    assert role.membership_due_ms == min(due_ms, NOW_MS + BACKOFF_MS)
    on_probe_failed(core, asked.probe)
    assert asked.probe_refusal == ""


@pytest.mark.parametrize("leads", [False, True])
def test_a_probe_that_fails_after_the_change_is_not_sent_again(leads: bool) -> None:
    core = built(Follower(2, NEVER_MS, 2_000))
    if leads:
        leading(core)
    request = PeerRequest(4, Purpose.PROBE)
    on_probe_failed(core, request)
    assert request.failures == 0


# Appending.


@pytest.mark.parametrize("waits", [False, True])
def test_the_record_is_in_force_from_the_append_on(waits: bool) -> None:
    core = built(removed=(ELSEWHERE,))
    role = leading(core, upkeep_due_ms=NEVER_MS)
    asked = PendingChange(ChangeKind.REMOVE, voter(3), LocalAsker(7), ack_when_committed=waits)
    begin(core, asked)
    after = VoterSet([voter(1), voter(2)], [key(3), ELSEWHERE])
    assert (core.voters.latest, core.voters.latest_offset) == (after, END)
    assert records(core) == [Voters(after.voters, removed=after.removed)]
    assert reported(core, VoterSetChanged) == [VoterSetChanged(END, (1, 2))]
    assert progress(core, VotersChanged) == [VotersChanged(after.voters)]
    assert core.log.end_offset == END + 1
    assert asked.offset == END
    assert settled(core) == ([] if waits else [(ErrorCode.NONE, END)])
    assert role.change is asked
    assert list(role.remote) == [2]
    assert role.check_quorum_deadline_ms == NOW_MS + core.config.check_quorum_ms
    assert role.upkeep_due_ms == NOW_MS


def test_an_added_voter_has_its_own_tombstone_lifted() -> None:
    """Those of other disks and other nodes stay."""
    removed = (key(4), key(9), ELSEWHERE)
    core = built(removed=removed)
    role = probing(core, change(ChangeKind.ADD, voter(4), readmit=True))
    respond(core, role, answer())
    (record,) = records(core)
    assert record.readmitted == (key(4),)
    assert set(record.removed) == {key(9), ELSEWHERE}


def test_only_an_addition_lifts_a_tombstone() -> None:
    core = built(removed=(key(4),))
    leading(core)
    begin(core, change(ChangeKind.REMOVE, voter(3)))
    (record,) = records(core)
    assert record.readmitted == ()


def test_an_update_keeps_the_fields_of_later_releases() -> None:
    known = replace(voter(1), tagged=((7, b"later"),))
    core = built(voters=(known, voter(2), voter(3)))
    leading(core)
    moved = replace(voter(1), endpoints=MOVED.endpoints)
    begin(core, change(ChangeKind.UPDATE, moved))
    assert core.voters.latest.get(1) == replace(known, endpoints=MOVED.endpoints)
    assert core.voters.latest.removed == ()


def test_what_is_already_so_needs_no_record() -> None:
    core = built()
    role = leading(core)
    begin(core, change(ChangeKind.UPDATE, voter(3)))
    assert role.change is None
    assert not records(core)
    assert settled(core) == [(ErrorCode.NONE, core.voters.latest_offset)]


@pytest.mark.interpreted
def test_there_is_no_other_kind_of_change() -> None:
    core = built()
    role = probing(core, change(cast(Any, None), voter(4)))
    with pytest.raises(AssertionError):
        respond(core, role, answer())


# Committing and ending.


@pytest.mark.parametrize(
    ("offset", "high_watermark", "now_ms", "refusal", "expected"),
    [
        (-1, END, DUE_MS - 1, "", None),
        (0, 0, DUE_MS - 1, "", None),
        (0, 1, DUE_MS - 1, "", (ErrorCode.NONE, "")),
        (0, 1, DUE_MS, "", (ErrorCode.NONE, "")),
        (END - 1, END, DUE_MS - 1, "", (ErrorCode.NONE, "")),
        (END, END, DUE_MS - 1, "", None),
        (END, END, DUE_MS, "", (ErrorCode.REQUEST_TIMED_OUT, "not committed in time")),
        (0, 0, DUE_MS, "", (ErrorCode.REQUEST_TIMED_OUT, "not committed in time")),
        (-1, END, DUE_MS, "", (ErrorCode.REQUEST_TIMED_OUT, "not reached in time")),
        (-1, END, DUE_MS, "old", (ErrorCode.INVALID_REQUEST, "node 3 cannot take part: old")),
        (0, 0, DUE_MS, "old", (ErrorCode.REQUEST_TIMED_OUT, "not committed in time")),
        (END, END, DUE_MS, "old", (ErrorCode.REQUEST_TIMED_OUT, "not committed in time")),
    ],
)
def test_when_a_change_is_over(
    offset: int,
    high_watermark: int,
    now_ms: int,
    refusal: str,
    expected: tuple[ErrorCode, str] | None,
) -> None:
    """Before its record is written, an update that ends restores the endpoints."""
    core = built()
    asked = change(ChangeKind.UPDATE, MOVED, offset=offset, probe_refusal=refusal)
    role = leading(core, change=asked)
    core.now_ms, core.high_watermark = now_ms, high_watermark
    poll_change(core, role)
    found = [(each.error, each.reason) for each in reported(core, VoterChangeEnded)]
    assert found == ([] if expected is None else [expected])
    assert (role.change is None) == (expected is not None)
    has_failed = expected is not None and expected[0] is not ErrorCode.NONE
    assert core.timers_fired[Timer.CHANGE] == has_failed
    restores = has_failed and offset < 0
    assert progress(core, PeerEndpoints) == (
        [PeerEndpoints(3, voter(3).endpoints)] if restores else []
    )


@pytest.mark.parametrize(
    ("offset", "probe_ms", "sends", "due_ms"),
    [
        (-1, NOW_MS, True, DUE_MS),
        (-1, NOW_MS + 1, False, NOW_MS + 1),
        (-1, DUE_MS + 1, False, DUE_MS),
        (0, NOW_MS, False, DUE_MS),
        (END, NOW_MS, False, DUE_MS),
        (0, NOW_MS + 1, False, DUE_MS),
        (END, NOW_MS + 1, False, DUE_MS),
    ],
)
def test_what_is_due_next_of_a_change(offset: int, probe_ms: int, sends: bool, due_ms: int) -> None:
    core = built()
    asked = change(ChangeKind.ADD, voter(4), offset=offset)
    asked.probe.due_ms = probe_ms
    role = leading(core, change=asked, membership_due_ms=NOW_MS)
    core.high_watermark = 0
    poll_change(core, role)
    assert bool(sent_of(core, BeginQuorumEpochRequest)) == sends
    assert role.membership_due_ms == due_ms


def test_without_a_change_nothing_is_due() -> None:
    core = built()
    role = leading(core, membership_due_ms=NOW_MS)
    assert not poll_change(core, role)
    assert role.membership_due_ms == NEVER_MS


@pytest.mark.parametrize(
    ("is_voter", "high_watermark", "expected"),
    [(False, END, True), (False, 4, True), (False, 3, False), (True, END, False)],
)
def test_whether_a_leader_s_own_removal_is_committed(
    is_voter: bool, high_watermark: int, expected: bool
) -> None:
    core = built(voters=(1, 2, 3) if is_voter else (2, 3))
    role = leading(core)
    core.high_watermark = high_watermark
    assert poll_change(core, role) == expected


# What the smaller set has reached already.


def test_a_smaller_set_commits_and_confirms_without_another_fetch() -> None:
    """Of voters 1 and 2, node 2 lags; alone, node 1 is the majority."""
    core = built(voters=(1, 2))
    role = leading(core)
    role.remote[2].end_offset = 0
    core.high_watermark = 4
    begin(core, change(ChangeKind.REMOVE, voter(2)))
    assert core.high_watermark == END
    assert role.reads.as_of_ms >= 0

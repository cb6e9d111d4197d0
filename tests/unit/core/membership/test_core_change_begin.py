"""How a change of the voter set begins: who refuses it, its deadline, and whether it is probed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from quorum.core.contract.events import VoterChangeEnded, VoterChangeStarted
from quorum.core.contract.local_events import AddVoter, RemoveVoter, UpdateVoter
from quorum.core.contract.output import Append, PeerEndpoints, RequestSettled
from quorum.core.membership.voter_changes import begin, on_request, pending_view
from quorum.core.messages.epoch_messages import BeginQuorumEpochRequest
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.pending_change import (
    ChangeKind,
    LocalAsker,
    PendingChange,
    PendingChangeView,
)
from quorum.core.state.roles import Follower, Leader, Role, Unattached
from quorum.errors import ErrorCode
from quorum.types import NO_NODE, Endpoint, Voter
from tests.support.bare_core import (
    EPOCH,
    LEADER,
    NOW_MS,
    core_of,
    lead,
    progress,
    reported,
    sent_of,
)
from tests.support.core_disk import key, voter

END = 5
"""Of the log, of which all is committed: a voters record at 3, and a record of epoch 4 at 4."""
MOVED = (Endpoint("CONTROLLER", "moved", 1),)


def built(role: Role | None = None, **given: Any) -> CoreState:
    """Return the state of node 1 in ``role``; without one it knows no leader."""
    return core_of(
        role or Unattached(NEVER_MS),
        leader_id=NO_NODE if role is None else LEADER,
        voters_at=3,
        log_end=END,
        epoch_start=4,
        high_watermark=END,
        **given,
    )


def leading(core: CoreState, **fields: Any) -> Leader:
    """Make node 1 a leader whose other voters have its whole log."""
    role = lead(core, epoch_start=4, **fields)
    for other in role.remote.values():
        other.end_offset = END
    return role


LIMIT_MS = built().config.request_timeout_ms


def refusals(core: CoreState) -> list[tuple[int, ErrorCode]]:
    return [(each.token, each.error) for each in progress(core, RequestSettled)]


def change(kind: ChangeKind, entry: Voter) -> PendingChange:
    return PendingChange(kind, entry, LocalAsker(7))


def change_of(core: CoreState) -> PendingChange:
    assert isinstance(core.role, Leader)
    assert core.role.change is not None
    return core.role.change


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("readmit", [False, True])
def test_an_operator_adds_a_voter(waits: bool, readmit: bool) -> None:
    core = built()
    leading(core)
    on_request(
        core, AddVoter(7, voter(4), timeout_ms=20, ack_when_committed=waits, readmit=readmit)
    )
    found = change_of(core)
    assert (found.kind, found.voter, found.asker) == (ChangeKind.ADD, voter(4), LocalAsker(7))
    assert (found.ack_when_committed, found.readmit) == (waits, readmit)
    assert found.deadline_ms == NOW_MS + 20


def test_an_operator_removes_a_voter() -> None:
    core = built()
    leading(core)
    on_request(core, RemoveVoter(7, key(3), 20))
    found = change_of(core)
    assert (found.kind, found.voter, found.asker) == (
        ChangeKind.REMOVE,
        Voter(key(3)),
        LocalAsker(7),
    )
    assert found.ack_when_committed
    assert found.deadline_ms == NOW_MS + 20
    assert not refusals(core)


def test_an_operator_updates_a_voter_and_is_answered_at_the_append() -> None:
    core = built()
    leading(core)
    on_request(core, UpdateVoter(7, replace(voter(1), endpoints=MOVED), 20))
    found = change_of(core)
    assert (found.kind, found.voter.endpoints) == (ChangeKind.UPDATE, MOVED)
    assert not found.ack_when_committed
    assert found.asker is None
    assert refusals(core) == [(7, ErrorCode.NONE)]


def test_there_is_no_other_request() -> None:
    with pytest.raises(AssertionError):
        on_request(built(), cast(Any, object()))


@pytest.mark.parametrize("case", ["follower", "not established", "shutting down"])
def test_only_a_leader_that_stays_begins_a_change(case: str) -> None:
    core = built(Follower(2, NEVER_MS, 2_000))
    if case != "follower":
        leading(core, established=case != "not established")
    core.process.is_shutting_down = case == "shutting down"
    begin(core, change(ChangeKind.REMOVE, voter(3)))
    expected = (
        ErrorCode.BROKER_NOT_AVAILABLE
        if core.process.is_shutting_down
        else ErrorCode.NOT_LEADER_OR_FOLLOWER
    )
    assert refusals(core) == [(7, expected)]
    assert [(each.error, each.offset) for each in reported(core, VoterChangeEnded)] == [
        (expected, -1)
    ]
    assert not reported(core, VoterChangeStarted)
    assert pending_view(core) is None
    assert not core.out.persist


def test_a_refused_change_is_answered_and_leaves_no_trace() -> None:
    core = built()
    leading(core)
    begin(core, change(ChangeKind.REMOVE, voter(4)))
    assert refusals(core) == [(7, ErrorCode.VOTER_NOT_FOUND)]
    assert pending_view(core) is None
    assert not reported(core, VoterChangeStarted)


@pytest.mark.parametrize("is_committed", [False, True])
def test_a_change_that_is_over_makes_room_for_the_next(is_committed: bool) -> None:
    core = built()
    role = leading(core)
    before = change(ChangeKind.REMOVE, voter(3))
    before.offset = END - is_committed
    role.change = before
    begin(core, PendingChange(ChangeKind.REMOVE, voter(2), LocalAsker(8)))
    if is_committed:
        assert change_of(core) is not before
        assert refusals(core) == [(7, ErrorCode.NONE)]
    else:
        assert change_of(core) is before
        assert refusals(core) == [(8, ErrorCode.REQUEST_TIMED_OUT)]


@pytest.mark.parametrize(
    ("timeout_ms", "expected_ms"),
    [
        (-1, LIMIT_MS),
        (0, LIMIT_MS),
        (1, 1),
        (LIMIT_MS - 1, LIMIT_MS - 1),
        (LIMIT_MS, LIMIT_MS),
        (LIMIT_MS + 1, LIMIT_MS),
    ],
)
def test_a_change_ends_in_time(timeout_ms: int, expected_ms: int) -> None:
    core = built()
    role = leading(core)
    begin(core, change(ChangeKind.ADD, voter(4)), timeout_ms)
    assert role.membership_due_ms == NOW_MS
    assert pending_view(core) == PendingChangeView("add", voter(4), -1, NOW_MS + expected_ms)
    assert reported(core, VoterChangeStarted) == [VoterChangeStarted("add", key(4))]


@pytest.mark.parametrize(
    ("kind", "entry", "is_probed"),
    [
        (ChangeKind.ADD, voter(4), True),
        (ChangeKind.REMOVE, voter(3), False),
        (ChangeKind.REMOVE, Voter(key(3)), False),
        (ChangeKind.UPDATE, voter(3), False),
        (ChangeKind.UPDATE, replace(voter(3), endpoints=MOVED), True),
        (ChangeKind.UPDATE, replace(voter(3), max_supported_version=2), True),
        (ChangeKind.UPDATE, replace(voter(3), min_supported_version=1), True),
        (ChangeKind.UPDATE, replace(voter(1), endpoints=MOVED), False),
        (ChangeKind.UPDATE, replace(voter(1), max_supported_version=2), False),
        (ChangeKind.UPDATE, replace(voter(1), min_supported_version=1), False),
    ],
)
def test_what_is_new_of_another_replica_is_probed(
    kind: ChangeKind, entry: Voter, is_probed: bool
) -> None:
    core = built()
    leading(core)
    begin(core, change(kind, entry))
    probes = sent_of(core, BeginQuorumEpochRequest)
    if not is_probed:
        assert not probes
        assert not progress(core, PeerEndpoints)
        return
    assert not [each for each in core.out.persist if isinstance(each, Append)]
    found = change_of(core).probe
    assert probes == [
        (
            entry.key.id,
            BeginQuorumEpochRequest(
                found.request_id, "cluster", entry.key, key(1), EPOCH, voter(1).endpoints
            ),
        )
    ]
    assert progress(core, PeerEndpoints) == [PeerEndpoints(entry.key.id, entry.endpoints)]
    assert core.requests.get(found.request_id) is found
    assert found.due_ms == NEVER_MS


def test_a_removed_leader_that_is_added_again_does_not_probe_itself() -> None:
    core = built(voters=(2, 3))
    leading(core)
    begin(core, change(ChangeKind.ADD, voter(1)))
    assert not sent_of(core, BeginQuorumEpochRequest)
    assert core.voters.latest.ids == (1, 2, 3)


def test_only_a_leader_shows_a_change() -> None:
    assert pending_view(built(Follower(2, NEVER_MS, 2_000))) is None

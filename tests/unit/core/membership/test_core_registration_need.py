"""What a replica asks for its own voter entry, and when: case by case."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from quorum.config import QuorumConfig
from quorum.core.contract.events import SelfRegistrationAsked, VoterChangeEnded, VotesNoMore
from quorum.core.contract.reasons import NonVoterReason
from quorum.core.membership.self_registration import (
    SELF_REGISTRATION_FETCH_TIMEOUTS,
    poll_as_leader,
    poll_self_registration,
    refresh,
    self_registration_due_ms,
)
from quorum.core.messages.voter_messages import (
    AddVoterRequest,
    RemoveVoterRequest,
    UpdateVoterRequest,
)
from quorum.core.positions.log_view import LogView
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.peer_requests import PeerRequest, Purpose
from quorum.core.state.pending_change import ChangeKind, PendingChange
from quorum.core.state.read_rounds import ReadRounds
from quorum.core.state.replica_table import build_remote
from quorum.core.state.roles import Follower, Leader, Role, Transfer, Unattached
from quorum.core.state.timers import Timer
from quorum.core.voters.voter_set import VoterSet
from quorum.types import (
    LOG_BEGINNING,
    ZERO_UUID,
    ElectionState,
    Endpoint,
    EpochStart,
    NodeId,
    OffsetAndEpoch,
    ReplicaKey,
    Voter,
)
from tests.support.core_disk import key, voter

NOW_MS = 10_000
PAUSE_MS = SELF_REGISTRATION_FETCH_TIMEOUTS * QuorumConfig().fetch_timeout_ms
ME = key(1)
ELSEWHERE = ReplicaKey(1, bytes(15) + b"x")
MOVED = Endpoint("CONTROLLER", "moved", 1)
JOINS: dict[str, Any] = {"auto_join": True}


def entry(node_id: NodeId = 1, **fields: Any) -> Voter:
    """An entry as this release writes it."""
    given = {"min_supported_version": 0, "max_supported_version": 1, **fields}
    return replace(voter(node_id), **given)


def core_of(
    role: Role | None = None,
    *,
    voters: tuple[Voter, ...] = (entry(1), entry(2)),
    removed: tuple[ReplicaKey, ...] = (),
    endpoints: tuple[Endpoint, ...] = (),
    me: ReplicaKey = ME,
    disqualified: str = "",
    **config: Any,
) -> CoreState:
    """A replica in epoch 4; its voters record at offset 3 is committed."""
    core = CoreState(
        config=QuorumConfig(**config),
        cluster_id="cluster",
        me=me,
        rng=random.Random(1),
        bootstrap=(),
    )
    core.adopt_election(ElectionState(4, disqualified=disqualified))
    core.log = LogView(LOG_BEGINNING, OffsetAndEpoch(4, 4), (EpochStart(4, 0),))
    core.voters.add(3, VoterSet(voters, removed))
    core.is_voter = any(each.key == me for each in voters)
    core.process.endpoints = endpoints
    core.role, core.now_ms, core.high_watermark = role or Unattached(NEVER_MS), NOW_MS, 4
    return core


OTHER = (entry(2),)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, None),
        ({"endpoints": (MOVED,)}, ChangeKind.UPDATE),
        ({"endpoints": (replace(MOVED, name="CLIENT"),)}, None),
        ({"endpoints": (replace(MOVED, port=0),)}, None),
        ({"endpoints": entry(1).endpoints}, None),
        ({"voters": (entry(1, max_supported_version=0), entry(2))}, ChangeKind.UPDATE),
        ({"voters": (entry(1, min_supported_version=1), entry(2))}, ChangeKind.UPDATE),
        ({"voters": (entry(1, key=ReplicaKey(1, ZERO_UUID)), entry(2))}, ChangeKind.UPDATE),
        ({"voters": OTHER, "endpoints": (MOVED,)}, None),
        ({"voters": OTHER, "endpoints": (MOVED,), **JOINS}, ChangeKind.ADD),
        ({"voters": OTHER, **JOINS}, None),
        ({"voters": OTHER, "endpoints": (replace(MOVED, name="CLIENT"),), **JOINS}, None),
        ({"voters": OTHER, "endpoints": (MOVED,), "removed": (ME,), **JOINS}, None),
        ({"voters": OTHER, "endpoints": (MOVED,), "removed": (ELSEWHERE,), **JOINS},
         ChangeKind.ADD),
        ({"voters": OTHER, "endpoints": (MOVED,), "disqualified": "copied", **JOINS}, None),
        ({"voters": OTHER, "endpoints": (MOVED,), "me": ReplicaKey(-1, ME.directory_id), **JOINS},
         None),
        ({"voters": OTHER, "endpoints": (MOVED,), "me": ReplicaKey(0, ME.directory_id), **JOINS},
         ChangeKind.ADD),
        ({"voters": OTHER, "endpoints": (MOVED,), "me": ReplicaKey(1, ZERO_UUID), **JOINS}, None),
        ({"voters": (), "endpoints": (replace(MOVED, name=""),), **JOINS}, None),
        ({"voters": (entry(1, key=ELSEWHERE), entry(2)), "endpoints": (MOVED,)}, None),
        ({"voters": (entry(1, key=ELSEWHERE), entry(2)), **JOINS}, None),
        ({"voters": (entry(1, key=ELSEWHERE), entry(2)), "endpoints": (MOVED,), **JOINS},
         ChangeKind.REMOVE),
    ],
)  # fmt: skip
def test_what_a_replica_wants(given: dict[str, Any], expected: ChangeKind | None) -> None:
    """A voter wants its entry to be right; with ``auto_join`` an observer wants to be a voter, and
    an older disk of its node id removed first.
    """
    core = core_of(**given)
    refresh(core)
    assert core.registration.change is expected


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, None),
        ({"voters": OTHER}, None),
        ({"voters": (entry(1, key=ReplicaKey(1, ZERO_UUID)), entry(2))}, None),
        ({"voters": OTHER, "removed": (ME,)}, NonVoterReason.REMOVED),
        ({"voters": OTHER, "removed": (ELSEWHERE,)}, None),
        ({"voters": (entry(1, key=ELSEWHERE), entry(2))}, NonVoterReason.OTHER_DIRECTORY),
    ],
)
def test_why_a_disk_does_not_vote_is_reported_once(
    given: dict[str, Any], reason: NonVoterReason | None
) -> None:
    core = core_of(**given)
    for _ in range(2):
        core.registration.forget()
        refresh(core)
    expected = [] if reason is None else [VotesNoMore(ME, reason)]
    assert [each for each in core.out.events if isinstance(each, VotesNoMore)] == expected


def test_a_disk_that_votes_again_is_no_news() -> None:
    core = core_of(voters=OTHER, removed=(ME,))
    refresh(core)
    core.voters.add(4, VoterSet((entry(1), entry(2))))
    refresh(core)
    assert core.registration.problem is None
    assert core.out.events == [VotesNoMore(ME, NonVoterReason.REMOVED)]


def test_the_need_is_derived_again_only_after_a_change() -> None:
    core = core_of()
    refresh(core)
    core.process.endpoints = (MOVED,)
    refresh(core)
    assert core.registration.change is None
    core.registration.forget()
    refresh(core)
    assert core.registration.change is ChangeKind.UPDATE


def follower() -> Follower:
    return Follower(2, NEVER_MS, 2_000)


def test_a_follower_asks_every_few_fetch_timeouts() -> None:
    role = follower()
    core = core_of(role, endpoints=(MOVED,))
    sent = []
    for core.now_ms in (
        NOW_MS,
        NOW_MS + PAUSE_MS - 1,
        NOW_MS + PAUSE_MS,
        NOW_MS + 2 * PAUSE_MS - 1,
    ):
        poll_self_registration(core, role)
        sent.append(len(core.out.events))
    assert sent == [0, 0, 1, 1]
    assert core.out.events == [SelfRegistrationAsked("update", 2)]
    assert self_registration_due_ms(core, role) == NOW_MS + 2 * PAUSE_MS


def test_a_follower_that_wants_nothing_starts_anew_later() -> None:
    role = follower()
    core = core_of(role, endpoints=(MOVED,))
    poll_self_registration(core, role)
    assert role.registration.due_ms == NOW_MS + PAUSE_MS
    core.process.endpoints = ()
    core.registration.forget()
    poll_self_registration(core, role)
    assert role.registration.due_ms == 0
    assert self_registration_due_ms(core, role) == NEVER_MS


@pytest.mark.parametrize(
    ("given", "kind", "timer"),
    [
        ({"endpoints": (MOVED,)}, UpdateVoterRequest, Timer.SELF_REGISTRATION),
        ({"voters": OTHER, "endpoints": (MOVED,), **JOINS}, AddVoterRequest, Timer.AUTO_JOIN),
        ({"voters": (entry(1, key=ELSEWHERE), entry(2)), "endpoints": (MOVED,), **JOINS},
         RemoveVoterRequest, Timer.AUTO_JOIN),
    ],
)  # fmt: skip
def test_each_need_has_its_request(given: dict[str, Any], kind: type, timer: Timer) -> None:
    role = follower()
    core = core_of(role, **given)
    role.registration.due_ms = NOW_MS
    poll_self_registration(core, role)
    sends = [*core.out.immediate, *core.out.after_persist]
    (send,) = [each for each in sends if type(each.message) is kind]
    assert send.to == 2
    assert list(core.timers_fired) == [timer]
    if isinstance(send.message, UpdateVoterRequest | AddVoterRequest):
        assert send.message.voter == Voter(ME, (MOVED,), 0, 1)
    else:
        assert (send.message.replica, send.message.voter) == (ME, ELSEWHERE)


def test_an_update_keeps_what_is_not_known_better() -> None:
    """Endpoints that the process has not reported, and fields of later releases."""
    role = follower()
    known = entry(1, max_supported_version=0, tagged=((7, b"later"),))
    core = core_of(role, voters=(known, entry(2)))
    role.registration.due_ms = NOW_MS
    poll_self_registration(core, role)
    (send,) = [*core.out.immediate, *core.out.after_persist]
    assert send.message.voter == replace(known, max_supported_version=1)


def leading(**fields: Any) -> Leader:
    return Leader(0, (), 0, ReadRounds(4, 0), **{"established": True, "can_write": True, **fields})


def transfer() -> Transfer:
    return Transfer(key(2), 1, NEVER_MS, PeerRequest(2, Purpose.TRANSFER))


def pending() -> PendingChange:
    return PendingChange(ChangeKind.REMOVE, entry(2), None, deadline_ms=NEVER_MS)


@pytest.mark.parametrize(
    ("fields", "given", "high_watermark", "begins"),
    [
        ({}, {"endpoints": (MOVED,)}, 4, True),
        ({}, {}, 4, False),
        ({}, {"endpoints": (MOVED,)}, 3, False),
        ({"can_write": False}, {"endpoints": (MOVED,)}, 4, False),
        ({"transfer": transfer()}, {"endpoints": (MOVED,)}, 4, False),
        ({"change": pending()}, {"endpoints": (MOVED,)}, 4, False),
        ({}, {"voters": OTHER, "endpoints": (MOVED,)}, 4, False),
        ({}, {"voters": OTHER, "endpoints": (MOVED,), **JOINS}, 4, False),
    ],
)
def test_a_leader_updates_its_own_entry_when_nothing_is_under_way(
    fields: dict[str, Any], given: dict[str, Any], high_watermark: int, begins: bool
) -> None:
    role = leading(**fields)
    before = role.change
    core = core_of(role, **given)
    core.high_watermark = high_watermark
    build_remote(core, role)
    poll_as_leader(core, role)
    change = role.change
    assert (change is not before) == begins
    # What the leader knows to be refused it does not begin.
    assert not [each for each in core.out.events if isinstance(each, VoterChangeEnded)]
    if begins:
        assert change is not None
        assert (change.kind, change.voter) == (ChangeKind.UPDATE, Voter(ME, (MOVED,), 0, 1))
        assert change.asker is None

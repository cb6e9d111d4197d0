"""A leadership transfer step by step: its target, the request to it, and each end."""

from __future__ import annotations

from typing import Any

import pytest

from quorum.core.contract.events import RoleChanged, TransferEnded, TransferStarted
from quorum.core.contract.local_events import TransferLeadership
from quorum.core.contract.outcomes import TransferOutcome
from quorum.core.contract.output import RequestSettled
from quorum.core.contract.reasons import RoleChangeReason
from quorum.core.leadership.transfer import (
    begin,
    begin_for_observer,
    on_failed,
    on_response,
    poll,
    transfer_leadership,
    why_not,
)
from quorum.core.messages.epoch_messages import EndQuorumEpochRequest, EndQuorumEpochResponse
from quorum.core.protocol.role_transitions import NO_TOKEN
from quorum.core.state.core_state import CoreState
from quorum.core.state.peer_requests import PeerRequest, Purpose
from quorum.core.state.roles import Follower, Leader, Resigned, Transfer, Unattached
from quorum.core.state.timers import Timer
from quorum.errors import ErrorCode
from quorum.types import NO_NODE, ReplicaKey
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

TOKEN = 7
DUE_MS = NOW_MS + 500
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
INELIGIBLE = ErrorCode.INELIGIBLE_REPLICA
OBSERVER = key(9)


def built(voters: tuple[int, ...] = (1, 2, 3), **of_core: Any) -> tuple[CoreState, Leader]:
    """Node 1 leads, all is committed, and every other voter has it."""
    core, role = leading(voters, **{"high_watermark": LOG_END, **of_core})
    for each in role.remote.values():
        each.end_offset, each.last_fetch_ms, each.last_caught_up_ms = LOG_END, NOW_MS, NOW_MS
    return core, role


def under_way(
    *, token: int = TOKEN, is_asked: bool = False, target: ReplicaKey | None = None
) -> tuple[CoreState, Leader]:
    """As ``built``, and leadership is on its way to node 2."""
    core, role = built()
    request = PeerRequest(2, Purpose.TRANSFER)
    role.transfer = Transfer(target or key(2), token, DUE_MS, request)
    if is_asked:
        core.requests.open(request, 5)
    return core, role


def settled(core: CoreState) -> list[tuple[int, ErrorCode, str]]:
    return [(each.token, each.error, each.message) for each in progress(core, RequestSettled)]


def ended(core: CoreState) -> list[tuple[TransferOutcome, str]]:
    return [(each.outcome, each.detail) for each in reported(core, TransferEnded)]


def resignations(core: CoreState) -> list[RoleChangeReason]:
    return [each.reason for each in reported(core, RoleChanged) if each.role == "Resigned"]


# The target.


@pytest.mark.parametrize(
    ("now_ms", "last_fetch_ms", "caught_up_ms", "expected"),
    [
        (1_000, -1, 1_000, "voter 2 has not fetched from this leader yet"),
        (1_000, 0, 1_000, ""),
        (NOW_MS, NOW_MS - 2_000, NOW_MS, ""),
        (NOW_MS, NOW_MS - 2_001, NOW_MS, "voter 2 has been silent for 2001 ms"),
        (NOW_MS, NOW_MS, NOW_MS - 2_000, ""),
        (NOW_MS, NOW_MS, NOW_MS - 2_001,
         "voter 2 is 3 records behind and has not caught up lately"),
    ],
)  # fmt: skip
def test_why_a_voter_could_not_take_over(
    now_ms: int, last_fetch_ms: int, caught_up_ms: int, expected: str
) -> None:
    core, role = built()
    core.now_ms = now_ms
    replica = role.remote[2]
    replica.last_fetch_ms, replica.last_caught_up_ms = last_fetch_ms, caught_up_ms
    replica.end_offset = LOG_END - 3
    assert why_not(core, replica) == expected


@pytest.mark.parametrize(
    ("ends", "silent", "expected"),
    [
        ((LOG_END, LOG_END, LOG_END), (), 2),
        ((LOG_END - 2, LOG_END - 1, LOG_END - 1), (), 3),
        ((LOG_END, LOG_END, LOG_END), (2,), 3),
        ((LOG_END - 1, LOG_END - 1, LOG_END), (4,), 2),
    ],
)
def test_the_voter_with_the_longest_log_takes_over(
    ends: tuple[int, ...], silent: tuple[int, ...], expected: int
) -> None:
    """Of equals the lowest id; one that could not in time is left out."""
    core, role = built((1, 2, 3, 4))
    for each, end in zip(role.remote.values(), ends, strict=True):
        each.end_offset = end
        each.last_fetch_ms = -1 if each.key.id in silent else NOW_MS
    begin(core, TransferLeadership(TOKEN, NO_NODE))
    assert role.transfer is not None
    assert role.transfer.target == key(expected)


# Beginning.


@pytest.mark.parametrize("target", [2, NO_NODE])
def test_a_transfer_that_begins_asks_a_level_target_at_once(target: int) -> None:
    core, role = built()
    begin(core, TransferLeadership(TOKEN, target))
    transfer = role.transfer
    assert transfer is not None
    assert (transfer.target, transfer.token) == (key(2), TOKEN)
    assert transfer.deadline_ms == NOW_MS + core.config.transfer_timeout_ms
    assert reported(core, TransferStarted) == [TransferStarted(key(2), EPOCH, LOG_END, None)]
    assert [to for to, _ in sent_of(core, EndQuorumEpochRequest)] == [2]
    assert settled(core) == []


@pytest.mark.parametrize(
    ("voters", "target", "error", "message"),
    [
        ((1, 2, 3), 1, ErrorCode.NONE, "node 1 leads already"),
        ((1, 2, 3), 77, ErrorCode.VOTER_NOT_FOUND, "node 77 is not a voter"),
        ((1, 2, 3), 3, INELIGIBLE, "voter 3 has not fetched from this leader yet"),
        ((1,), NO_NODE, INELIGIBLE, "there is no other voter"),
        ((1,), 77, ErrorCode.VOTER_NOT_FOUND, "there is no other voter"),
        ((1, 3, 4), NO_NODE, INELIGIBLE,
         "no other voter is caught up: voter 3 has not fetched from this leader yet; "
         "voter 4 has not fetched from this leader yet"),
    ],
)  # fmt: skip
def test_a_transfer_without_a_target_is_refused(
    voters: tuple[int, ...], target: int, error: ErrorCode, message: str
) -> None:
    """Nodes 3 and 4 have not fetched yet."""
    core, role = built(voters)
    for each in (3, 4):
        if each in role.remote:
            role.remote[each].last_fetch_ms = -1
    begin(core, TransferLeadership(TOKEN, target))
    assert settled(core) == [(TOKEN, error, message)]
    assert role.transfer is None
    assert not core.out.events


@pytest.mark.parametrize("leads", [False, True])
def test_only_an_established_leader_transfers_leadership(leads: bool) -> None:
    core = core_of(follower())
    if leads:
        core, role = built()
        role.established = False
    begin(core, TransferLeadership(TOKEN, 1))
    assert settled(core) == [(TOKEN, NOT_LEADER, "this node does not lead")]


def test_there_is_one_transfer_at_a_time() -> None:
    core, role = under_way()
    before = role.transfer
    begin(core, TransferLeadership(8, 3))
    assert role.transfer is before
    error = ErrorCode.REQUEST_TIMED_OUT
    assert settled(core) == [(8, error, "another transfer has not ended yet")]


def test_a_request_without_a_token_gets_no_answer() -> None:
    core, _ = built()
    begin(core, TransferLeadership(NO_TOKEN, 77))
    assert settled(core) == []


@pytest.mark.parametrize(
    ("can_write", "has_target", "is_under_way", "resigns"),
    [
        (True, True, False, False),
        (True, False, False, True),
        (False, True, False, True),
        (False, False, True, False),
    ],
)
def test_a_leader_that_shuts_down_transfers_leadership_or_resigns(
    can_write: bool, has_target: bool, is_under_way: bool, resigns: bool
) -> None:
    core, role = under_way() if is_under_way else built()
    before = role.transfer
    role.can_write = can_write
    for each in role.remote.values():
        each.last_fetch_ms = NOW_MS if has_target else -1
    transfer_leadership(core, role)
    assert resignations(core) == ([RoleChangeReason.SHUT_DOWN] if resigns else [])
    if not resigns and not is_under_way:
        assert role.transfer is not None
        assert (role.transfer.target, role.transfer.token) == (key(2), NO_TOKEN)
    else:
        assert role.transfer is before


@pytest.mark.parametrize("has_target", [True, False])
def test_leadership_moves_for_an_observer_if_another_voter_can_take_over(has_target: bool) -> None:
    core, role = built()
    for each in role.remote.values():
        each.last_fetch_ms = NOW_MS if has_target else -1
    begin_for_observer(core, role, OBSERVER)
    started = TransferStarted(key(2), EPOCH, LOG_END, OBSERVER)
    assert reported(core, TransferStarted) == ([started] if has_target else [])
    assert (role.transfer is not None) == has_target
    assert settled(core) == []


# On its way.


def test_without_a_transfer_there_is_nothing_to_do() -> None:
    core, role = built()
    poll(core, role)
    assert not core.out.events
    assert not sent_of(core, EndQuorumEpochRequest)


def test_the_target_is_asked_to_campaign_as_the_first_successor() -> None:
    core, role = under_way()
    role.remote[3].end_offset = LOG_END + 1
    poll(core, role)
    assert role.transfer is not None
    request = EndQuorumEpochRequest(
        role.transfer.request.request_id,
        CLUSTER,
        key(1),
        EPOCH,
        (key(2), key(3)),
        voter(1).endpoints,
        campaign_now=True,
    )
    assert sent_of(core, EndQuorumEpochRequest) == [(2, request)]
    assert request.request_id
    assert role.asked_to_campaign == key(2)
    poll(core, role)
    assert len(sent_of(core, EndQuorumEpochRequest)) == 1


@pytest.mark.parametrize(
    ("end", "high_watermark", "is_asked"),
    [
        (LOG_END, LOG_END, True),
        (LOG_END - 1, LOG_END, False),
        (LOG_END, LOG_END - 1, False),
    ],
)
def test_the_target_must_have_everything_and_all_must_be_committed(
    end: int, high_watermark: int, is_asked: bool
) -> None:
    core, role = under_way()
    role.remote[2].end_offset, core.high_watermark = end, high_watermark
    poll(core, role)
    assert bool(sent_of(core, EndQuorumEpochRequest)) == is_asked
    assert role.asked_to_campaign == (key(2) if is_asked else None)


# Ending.


@pytest.mark.parametrize("target", [key(77), ReplicaKey(2, bytes(15) + b"x"), None])
def test_a_target_that_is_a_voter_no_longer_ends_the_transfer(target: ReplicaKey | None) -> None:
    """It was removed; or another disk of its node id was added meanwhile. An unknown disk is not
    another one.
    """
    core, role = under_way(target=target or ReplicaKey(2))
    poll(core, role)
    assert (role.transfer is None) == (target is not None)
    if target is not None:
        assert [each[:2] for each in settled(core)] == [(TOKEN, ErrorCode.VOTER_NOT_FOUND)]
        assert ended(core) == [(TransferOutcome.NO_VOTER, "")]


@pytest.mark.parametrize(
    ("now_ms", "is_asked", "expected"),
    [
        (DUE_MS - 1, True, []),
        (DUE_MS, True, [(TransferOutcome.NOT_ELECTED, "within {} ms")]),
        (DUE_MS, False, [(TransferOutcome.NOT_CAUGHT_UP, f"{LOG_END} within {{}} ms")]),
    ],
)
def test_a_transfer_ends_in_time(
    now_ms: int, is_asked: bool, expected: list[tuple[TransferOutcome, str]]
) -> None:
    core, role = under_way(is_asked=is_asked)
    core.now_ms = now_ms
    poll(core, role)
    limit_ms = core.config.transfer_timeout_ms
    assert ended(core) == [(outcome, detail.format(limit_ms)) for outcome, detail in expected]
    assert (role.transfer is None) == bool(expected)
    assert core.timers_fired[Timer.TRANSFER] == len(expected)
    errors = [each[1] for each in settled(core)]
    assert errors == [ErrorCode.REQUEST_TIMED_OUT] * len(expected)


@pytest.mark.parametrize("is_shutting_down", [False, True])
def test_an_unreachable_target_ends_the_transfer(is_shutting_down: bool) -> None:
    """A leader that shuts down resigns then; another one goes on."""
    core, role = under_way(is_asked=True)
    core.process.is_shutting_down = is_shutting_down
    on_failed(core)
    assert ended(core) == [(TransferOutcome.UNREACHABLE, "")]
    assert [each[1] for each in settled(core)] == [ErrorCode.BROKER_NOT_AVAILABLE]
    assert role.transfer is None
    assert isinstance(core.role, Resigned if is_shutting_down else Leader)


def answer(**fields: Any) -> EndQuorumEpochResponse:
    given = {"error": ErrorCode.NONE, "leader_id": 1, "epoch": EPOCH, **fields}
    return EndQuorumEpochResponse(5, **given)


@pytest.mark.parametrize(
    ("fields", "outcomes"),
    [
        ({}, []),
        ({"error": INELIGIBLE}, [(TransferOutcome.REFUSED, "INELIGIBLE_REPLICA")]),
        ({"error": INELIGIBLE, "epoch": EPOCH - 1},
         [(TransferOutcome.REFUSED, "INELIGIBLE_REPLICA")]),
        ({"epoch": EPOCH + 1, "leader_id": NO_NODE}, [(TransferOutcome.SUPERSEDED, "")]),
        ({"error": INELIGIBLE, "epoch": EPOCH + 1, "leader_id": NO_NODE},
         [(TransferOutcome.SUPERSEDED, "")]),
    ],
)  # fmt: skip
def test_the_target_s_answer(fields: dict[str, Any], outcomes: list[Any]) -> None:
    """Agreement leaves the transfer open, until a later epoch ends it with the leadership."""
    core, role = under_way(is_asked=True)
    core.process.is_shutting_down = True
    on_response(core, 2, answer(**fields))
    assert ended(core) == outcomes
    assert (role.transfer is None) == bool(outcomes)
    if fields.get("epoch") == EPOCH + 1:
        assert isinstance(core.role, Unattached)
        assert resignations(core) == []


@pytest.mark.parametrize("leads", [True, False])
def test_without_a_transfer_its_end_is_no_news(leads: bool) -> None:
    """Neither a refusal nor silence makes a leader resign that transfers nothing."""
    core = built()[0] if leads else core_of(follower())
    core.process.is_shutting_down = True
    on_response(core, 2, answer(error=INELIGIBLE, leader_id=core.leader_id))
    assert isinstance(core.role, Leader if leads else Follower)
    assert not ended(core)


def test_silence_means_nothing_to_who_leads_no_longer() -> None:
    core = core_of(follower())
    core.process.is_shutting_down = True
    on_failed(core)
    assert isinstance(core.role, Follower)
    assert not core.out.events

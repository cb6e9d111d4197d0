"""When a replica asks its leader for a read position, which answers it takes, and who may ask."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from quorum.core.contract.events import MessageIgnored
from quorum.core.contract.output import ReadConfirmed, ReadFailed
from quorum.core.contract.reasons import IgnoreReason
from quorum.core.liveness.freshness import Freshness
from quorum.core.messages.read_messages import ReadPositionRequest, ReadPositionResponse, ReadRound
from quorum.core.protocol.requests import next_attempt
from quorum.core.replication.read_confirmation import note_echo, on_read_position
from quorum.core.replication.read_forwarding import (
    on_read_position_response,
    poll_reads,
    reads_due_ms,
)
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.roles import Unattached
from quorum.core.state.timers import Timer
from quorum.core.state.waiting_reads import ForwardedRead
from quorum.errors import ErrorCode
from quorum.types import NO_NODE, ReplicaKey
from tests.support.bare_core import (
    CLUSTER,
    EPOCH,
    LEADER,
    NOW_MS,
    core_of,
    follower,
    leading,
    progress,
    reported,
    sent_of,
)
from tests.support.core_disk import key

LATER_MS = NOW_MS + 500


def waiting(
    *deadlines_ms: int, follows: bool = True, asked: bool = False, due_ms: int = 0
) -> CoreState:
    """Reads with these deadlines wait, with or without a request under way for all of them."""
    core = core_of(follower() if follows else Unattached(NEVER_MS))
    for token, deadline_ms in enumerate(deadlines_ms, start=1):
        core.forwarded.add(ForwardedRead(token, deadline_ms))
    core.forwarded.request.due_ms = due_ms
    if asked:
        core.forwarded.ask(LEADER)
        next_attempt(core, core.forwarded.request)
    return core


@pytest.mark.parametrize(
    ("deadlines_ms", "fields", "asks", "failed"),
    [
        ((LATER_MS,), {}, True, []),
        ((LATER_MS,), {"due_ms": NOW_MS}, True, []),
        ((LATER_MS,), {"due_ms": NOW_MS + 1}, False, []),
        ((LATER_MS,), {"asked": True}, False, []),
        ((NOW_MS + 1,), {}, True, []),
        ((NOW_MS,), {}, False, [1]),
        ((NOW_MS, LATER_MS), {}, True, [1]),
        # A request under way is not worth its answer once its last read has failed.
        ((NOW_MS,), {"asked": True}, False, [1]),
        ((NOW_MS, LATER_MS), {"asked": True}, False, [1]),
        ((LATER_MS,), {"follows": False}, False, []),
        ((NOW_MS,), {"follows": False}, False, [1]),
        ((), {}, False, []),
    ],
)
def test_a_follower_asks_while_reads_wait(
    deadlines_ms: tuple[int, ...], fields: dict[str, Any], asks: bool, failed: list[int]
) -> None:
    core = waiting(*deadlines_ms, **fields)
    is_open = core.forwarded.request.request_id > 0
    poll_reads(core)
    assert [to for to, _ in sent_of(core, ReadPositionRequest)] == ([LEADER] if asks else [])
    assert [each.token for each in progress(core, ReadFailed)] == failed
    assert core.timers_fired[Timer.READ_PATIENCE] == len(failed)
    assert core.forwarded.asked == (len(core.forwarded) if asks or is_open else 0)
    is_wanted = len(core.forwarded) > 0 and (asks or is_open)
    assert (core.forwarded.request.request_id > 0) == is_wanted


def test_reads_that_came_after_a_request_that_is_given_up_are_asked_for_at_once() -> None:
    core = waiting(NOW_MS, asked=True)
    core.forwarded.add(ForwardedRead(2, LATER_MS))
    poll_reads(core)
    assert len(sent_of(core, ReadPositionRequest)) == 1
    assert core.forwarded.asked == 1


@pytest.mark.parametrize(
    ("deadlines_ms", "fields", "due_ms"),
    [
        ((), {}, NEVER_MS),
        ((LATER_MS,), {}, 0),
        ((LATER_MS,), {"due_ms": NOW_MS + 3}, NOW_MS + 3),
        ((LATER_MS,), {"due_ms": LATER_MS + 3}, LATER_MS),
        ((LATER_MS + 9_000,), {"asked": True}, NOW_MS + 2_000),
        ((LATER_MS,), {"due_ms": NOW_MS + 3, "follows": False}, LATER_MS),
    ],
)
def test_a_node_wakes_for_its_next_request_or_the_end_of_a_reads_patience(
    deadlines_ms: tuple[int, ...], fields: dict[str, Any], due_ms: int
) -> None:
    assert reads_due_ms(waiting(*deadlines_ms, **fields)) == due_ms


# The answer.


def answer(core: CoreState, *, sender: int = LEADER, **fields: Any) -> None:
    values = {"error": ErrorCode.NONE, "leader_id": LEADER, "epoch": EPOCH, **fields}
    request_id = core.forwarded.request.request_id
    on_read_position_response(core, sender, ReadPositionResponse(request_id, **values))


def test_a_position_confirms_the_reads_that_were_asked_for() -> None:
    core = waiting(LATER_MS, LATER_MS, asked=True)
    core.forwarded.add(ForwardedRead(3, LATER_MS))
    answer(core, read_offset=7)
    assert progress(core, ReadConfirmed) == [ReadConfirmed(1, 7), ReadConfirmed(2, 7)]
    assert [each.token for each in core.forwarded.reads] == [3]
    assert core.forwarded.request.due_ms == 0


@pytest.mark.parametrize(
    ("fields", "is_violation"),
    [
        ({"error": ErrorCode.NOT_LEADER_OR_FOLLOWER}, None),
        ({"epoch": EPOCH - 1, "read_offset": 7}, None),
        ({"leader_id": NO_NODE, "read_offset": 7}, True),
        ({"read_offset": -1}, True),
    ],
)
def test_without_a_position_the_reads_wait_for_another_try(
    fields: dict[str, Any], is_violation: bool | None
) -> None:
    core = waiting(LATER_MS, asked=True)
    answer(core, **fields)
    assert progress(core, ReadConfirmed) == []
    assert len(core.forwarded) == 1
    assert core.forwarded.request.failures == 1
    assert core.forwarded.request.due_ms > NOW_MS
    bad = [
        each.is_violation
        for each in reported(core, MessageIgnored)
        if each.reason is IgnoreReason.BAD_READ_POSITION
    ]
    assert bad == ([] if is_violation is None else [is_violation])


def test_an_answer_of_a_newer_epoch_does_not_count_as_a_failure() -> None:
    """The next leader is asked as soon as it is known."""
    core = waiting(LATER_MS, asked=True)
    answer(core, epoch=EPOCH + 1, leader_id=3, error=ErrorCode.FENCED_LEADER_EPOCH)
    assert core.epoch == EPOCH + 1
    request = core.forwarded.request
    assert (request.failures, request.due_ms, core.forwarded.asked) == (0, 0, 0)


# The leader.


@pytest.mark.parametrize(
    ("replica", "fields", "error"),
    [
        (key(2), {}, None),
        (key(9), {}, None),
        (ReplicaKey(0), {}, None),
        (ReplicaKey(NO_NODE), {}, None),
        (ReplicaKey(NO_NODE - 1), {}, ErrorCode.INVALID_REQUEST),
        (ReplicaKey(1, b"x" * 16), {}, ErrorCode.INVALID_REQUEST),
        (key(2), {"established": False}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (key(2), {"can_write": False}, ErrorCode.OFFSET_NOT_AVAILABLE),
    ],
)
def test_a_leader_whose_epoch_is_durable_and_committed_gives_positions(
    replica: ReplicaKey, fields: dict[str, bool], error: ErrorCode | None
) -> None:
    core, leader = leading(high_watermark=7)
    core.role = leader = replace(leader, **fields)
    request = ReadPositionRequest(5, CLUSTER, replica, EPOCH)
    on_read_position(core, 2, request)
    if error is None:
        assert len(leader.reads) == 1
    else:
        assert len(leader.reads) == 0
        ((_, refusal),) = sent_of(core, ReadPositionResponse)
        assert refusal.error is error


def test_a_confirmed_round_makes_the_leaders_own_state_fresh() -> None:
    """A majority followed it when that round began."""
    core, leader = leading(high_watermark=7)
    core.now_ms = NOW_MS + 50
    note_echo(core, leader, leader.remote[2], ReadRound(EPOCH, 1))
    assert core.freshness == Freshness(0, 7)
    core.now_ms = NOW_MS + 80
    note_echo(core, leader, leader.remote[3], ReadRound(EPOCH, 2))
    assert core.freshness == Freshness(NOW_MS + 50, 7)

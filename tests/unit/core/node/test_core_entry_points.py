"""What the entry points do before a turn: they take the time and pass on what they are given."""

from __future__ import annotations

import random
from typing import Any

import pytest

from quorum.config import QuorumConfig
from quorum.core.contract.events import ProcessPaused
from quorum.core.contract.local_events import DurableState, ShutDown
from quorum.core.contract.output import Append, ReadFailed
from quorum.core.messages.received_records import VotersAt
from quorum.core.node.raft_node import RaftNode
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.roles import Leader
from quorum.errors import QuorumUsageError
from quorum.types import LOG_BEGINNING, ElectionState, EpochStart, OffsetAndEpoch
from tests.support.core_disk import key, voter
from tests.unit.core.node.test_core_deadlines import (
    DUE_MS,
    NOW_MS,
    asking,
    core_of,
    flight,
    follower,
    leader,
)
from tests.unit.core.node.test_core_turns import CountingNode

STATE = DurableState(
    election=ElectionState(3, 2),
    log_start=LOG_BEGINNING,
    log_end=OffsetAndEpoch(6, 3),
    epochs=(EpochStart(3, 0),),
    snapshots=(),
    voters=(VotersAt(-1, (voter(1), voter(2), voter(3))),),
)
CALLS: dict[str, Any] = {
    "receive": lambda node: node.receive(NOW_MS, 2, "a message"),
    "propose": lambda node: node.propose(NOW_MS, end_offset=1, payload=b"a"),
    "read": lambda node: node.read(NOW_MS, 1),
    "ask_position": lambda node: node.ask_position(NOW_MS, 1),
    "persisted": lambda node: node.persisted(NOW_MS, 0),
    "tick": lambda node: node.tick(NOW_MS),
    "on_local_event": lambda node: node.on_local_event(NOW_MS, ShutDown()),
    "process_paused": lambda node: node.process_paused(NOW_MS, 1),
}


def unstarted() -> RaftNode:
    return RaftNode(config=QuorumConfig(), cluster_id="c", me=key(1), rng=random.Random(1))


@pytest.mark.parametrize("name", CALLS)
def test_a_node_does_nothing_before_it_is_started(name: str) -> None:
    with pytest.raises(QuorumUsageError, match="has not been started"):
        CALLS[name](unstarted())


def test_a_node_is_started_once() -> None:
    node = unstarted()
    node.start(NOW_MS, STATE)
    with pytest.raises(QuorumUsageError, match="started before"):
        node.start(NOW_MS, STATE)


def test_deadlines_count_from_the_start() -> None:
    """A follower waits for its first Fetch, and with it for the leader."""
    output = unstarted().start(NOW_MS, STATE)
    assert output.next_deadline_ms == NOW_MS + QuorumConfig().request_timeout_ms


@pytest.mark.parametrize("offset_ms", [-1, 0, 1])
def test_time_never_runs_backwards(offset_ms: int) -> None:
    core = asking(core_of(follower(NEVER_MS)), flight(due_ms=NEVER_MS))
    CountingNode(core).tick(NOW_MS + offset_ms)
    assert core.now_ms == NOW_MS + max(0, offset_ms)


def test_every_call_has_an_output_of_its_own() -> None:
    node = CountingNode(core_of(follower(NEVER_MS)))
    first, second = node.tick(NOW_MS), node.tick(NOW_MS)
    assert (len(first.immediate), len(second.immediate)) == (1, 0)


def test_a_proposal_is_appended() -> None:
    node = CountingNode(leader(can_write=True, upkeep_due_ms=DUE_MS))
    output = node.propose(NOW_MS, end_offset=2, payload=b"ab")
    assert [each.payload for each in output.persist if isinstance(each, Append)] == [b"ab"]
    assert node.log_end_offset == 2


def test_a_read_fails_at_once_where_nobody_leads() -> None:
    node = CountingNode(core_of(follower(NEVER_MS)))
    assert node.read(NOW_MS, 7).progress == [ReadFailed(7)]


def test_a_position_is_asked_of_the_leader() -> None:
    core = core_of(follower(NEVER_MS))
    assert CountingNode(core).ask_position(NOW_MS, 7).progress == []
    assert [each.token for each in core.forwarded.reads] == [7]


def test_after_a_process_pause_the_deadline_moves_and_no_turn_is_taken() -> None:
    """Method: a leader whose check quorum is overdue; in a turn it would resign."""
    core = leader(check_quorum_deadline_ms=NOW_MS)
    node = CountingNode(core)
    output = node.process_paused(NOW_MS, 500)
    assert output.events == [ProcessPaused(500)]
    assert isinstance(core.role, Leader)
    assert output.next_deadline_ms == core.role.check_quorum_deadline_ms > NOW_MS
    assert node.turns == 0

"""What a leader does with a Fetch, step by step, from a state built by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from quorum.core.contract.events import (
    DivergenceResolutionStarted,
    ReplicaRegressed,
)
from quorum.core.messages.fetch_messages import (
    FetchDecision,
    FetchRequest,
    FetchResponse,
    ReceivedFetchRequest,
    Subtree,
)
from quorum.core.messages.read_messages import NO_ROUND, ReadRound
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest
from quorum.core.replication.fetch_serving import answer_due, on_fetch
from quorum.core.replication.snapshot_serving import on_fetch_snapshot
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import HeldFetch
from quorum.errors import ErrorCode
from quorum.types import NO_NODE, OffsetAndEpoch, ReplicaKey
from tests.support.bare_core import (
    CLUSTER,
    EPOCH,
    LOG_END,
    NOW_MS,
    core_of,
    follower,
    leading,
    reported,
    sent,
)
from tests.support.core_disk import key, voter

OBSERVER = 9
REQUEST = FetchRequest(7, CLUSTER, key(2), EPOCH, LOG_END, EPOCH)
SNAPSHOT = OffsetAndEpoch(30, EPOCH)
CHUNK = FetchSnapshotRequest(7, CLUSTER, key(2), EPOCH, SNAPSHOT, 0, 100)


def fetch(core: CoreState, *, is_proven: bool = True, own: bytes = b"", **fields: Any) -> None:
    request = replace(REQUEST, **fields)
    received = ReceivedFetchRequest(request, is_proven=is_proven, own_digest=own)
    on_fetch(core, request.replica.id, received)


def answer(core: CoreState, to: int = 2) -> FetchDecision | FetchResponse | None:
    """The one answer, or None while the Fetch is held."""
    found = [each for each in sent(core, to) if isinstance(each, FetchDecision | FetchResponse)]
    assert len(found) < 2
    return found[0] if found else None


def refusal(core: CoreState, to: int = 2) -> ErrorCode | None:
    found = answer(core, to)
    return found.error if isinstance(found, FetchResponse) else None


# Who is served, and who is remembered.


@pytest.mark.parametrize("established", [True, False])
@pytest.mark.parametrize("epoch", [EPOCH, EPOCH + 1])
def test_a_leader_serves_and_remembers_only_once_its_epoch_is_durable(
    established: bool, epoch: int
) -> None:
    core, leader = leading()
    leader.established = established
    fetch(core, replica=key(OBSERVER), epoch=epoch)
    if epoch > EPOCH:
        assert refusal(core, OBSERVER) is ErrorCode.UNKNOWN_LEADER_EPOCH
    else:
        expected = None if established else ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert refusal(core, OBSERVER) is expected
    assert [*leader.ahead] == ([key(OBSERVER)] if established and epoch > EPOCH else [])
    assert [*leader.observers] == ([key(OBSERVER)] if established and epoch == EPOCH else [])


def test_a_follower_remembers_nobody() -> None:
    core = core_of(follower())
    fetch(core, epoch=EPOCH + 1)
    assert refusal(core) is ErrorCode.UNKNOWN_LEADER_EPOCH


def test_the_report_of_a_relay_stays_as_it_is_until_it_reports_another() -> None:
    core, leader = leading()
    known = Subtree(4, 1, ((20, OBSERVER),))
    for request_id, given, expected in (
        (1, known, known),
        (2, known, known),
        (3, Subtree(6, 1), Subtree(6, 1, known.links)),
        (4, None, None),
    ):
        fetch(core, replica=key(OBSERVER), request_id=request_id, subtree=given)
        assert leader.observers[key(OBSERVER)].subtree == expected


# A replica that went back.


@pytest.mark.parametrize(
    ("is_voter", "end", "proven", "offset", "fields", "is_reported", "is_refused", "left"),
    [
        (True, 30, 30, 30, {}, False, False, (30, 30)),
        (True, 30, 30, 31, {}, False, False, (31, 31)),
        (True, 30, 30, 29, {}, True, True, (30, 30)),
        # What only an unproven Fetch acknowledged is not held against the voter.
        (True, 30, 25, 25, {}, True, False, (25, 25)),
        (True, 30, 25, 29, {}, True, False, (29, 29)),
        (True, 30, 25, 24, {}, True, True, (30, 25)),
        (True, 25, 30, 30, {}, False, False, (30, 30)),
        (True, 25, 30, 29, {}, True, True, (25, 30)),
        (False, 30, 30, 29, {}, True, False, (29, 29)),
        (True, 30, 30, 29, {"has_lost_records": True}, False, False, (29, 29)),
        (True, 30, 30, 29, {"has_lost_records": True, "is_proven": False}, False, False, (29, 30)),
    ],
)
def test_a_voter_below_what_it_certainly_acknowledged_is_refused(
    is_voter: bool,
    end: int,
    proven: int,
    offset: int,
    fields: dict[str, Any],
    is_reported: bool,
    is_refused: bool,
    left: tuple[int, int],
) -> None:
    core, leader = leading()
    replica = key(2 if is_voter else OBSERVER)
    if not is_voter:
        fetch(core, replica=replica)
        core.out.immediate.clear()
    known = leader.remote[2] if is_voter else leader.observers[replica]
    known.end_offset, known.proven_end = end, proven
    fetch(core, replica=replica, fetch_offset=offset, **fields)
    assert reported(core, ReplicaRegressed) == (
        [ReplicaRegressed(replica, end, offset)] if is_reported else []
    )
    assert (refusal(core, replica.id) is ErrorCode.REPLICA_REGRESSED) == is_refused
    assert (known.end_offset, known.proven_end) == left


@pytest.mark.parametrize("node_id", [2, OBSERVER])
@pytest.mark.parametrize("own", [b"theirs", b"own"])
def test_another_history_is_refused_and_looked_into(node_id: int, own: bytes) -> None:
    core, _ = leading()
    fetch(core, replica=key(node_id), digest=b"theirs", own=own)
    is_equal = own == b"theirs"
    assert (refusal(core, node_id) is ErrorCode.DIGEST_MISMATCH) != is_equal
    assert len(reported(core, DivergenceResolutionStarted)) == (not is_equal)
    if core.chain.resolution is not None:
        assert core.chain.resolution.peer_votes == (node_id == 2)


# When it is answered.


@pytest.mark.parametrize(
    ("fields", "delay_ms", "committed", "is_held"),
    [
        ({}, 0, LOG_END, True),
        ({"max_wait_ms": 0}, 0, LOG_END, False),
        ({"high_watermark": LOG_END - 1}, 0, LOG_END, False),
        ({"high_watermark": LOG_END - 1}, 5, LOG_END, True),
        ({"fetch_offset": LOG_END - 9}, 0, LOG_END, False),
    ],
)
def test_a_replica_that_has_everything_is_held(
    fields: dict[str, Any], delay_ms: int, committed: int, is_held: bool
) -> None:
    core, leader = leading(high_watermark=committed, high_watermark_delay_ms=delay_ms)
    leader.remote[2].last_fetch_ms = 0
    fetch(core, **{"max_wait_ms": 100, "high_watermark": committed, **fields})
    assert (answer(core) is None) == is_held
    assert len(leader.held) == is_held


@pytest.mark.parametrize(("node_id", "is_held"), [(2, True), (OBSERVER, False)])
def test_among_too_many_held_fetches_a_voter_still_gets_a_place(
    node_id: int, is_held: bool
) -> None:
    core, leader = leading(high_watermark=LOG_END, held_fetches_max=1)
    leader.held.hold(HeldFetch(3, REQUEST, NOW_MS + 100, is_voter=True))
    fetch(core, replica=key(node_id), max_wait_ms=100, high_watermark=LOG_END)
    assert len(leader.held) == 1 + is_held
    assert (answer(core, node_id) is None) == is_held


@pytest.mark.parametrize("last_fetch_ms", [-1, NOW_MS - 5])
@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("number", [0, 1])
def test_who_has_no_answer_of_this_leader_yet_learns_its_endpoints(
    last_fetch_ms: int, waits: bool, number: int
) -> None:
    """It may have restarted after earlier answers. Its Fetch may wait."""
    core, leader = leading()
    leader.remote[2].last_fetch_ms = last_fetch_ms
    fetch(
        core,
        fetch_offset=LOG_END if waits else 5,
        high_watermark=core.high_watermark,
        max_wait_ms=100,
        read_round=ReadRound(EPOCH, number) if number else NO_ROUND,
    )
    if waits:
        core.now_ms += 100
        answer_due(core, leader)
    found = answer(core)
    assert isinstance(found, FetchDecision)
    assert found.leader_endpoints == (() if number else voter(1).endpoints)


def test_a_consumer_learns_no_endpoints() -> None:
    core, _ = leading()
    fetch(core, replica=ReplicaKey(NO_NODE), fetch_offset=0, last_fetched_epoch=0)
    found = answer(core, NO_NODE)
    assert isinstance(found, FetchDecision)
    assert found.leader_endpoints == ()


@pytest.mark.parametrize("established", [True, False])
def test_a_leader_serves_chunks_once_its_epoch_is_durable(established: bool) -> None:
    core, leader = leading()
    leader.established = established
    core.snapshots.add(SNAPSHOT, 500, now_ms=0)
    on_fetch_snapshot(core, 2, CHUNK)
    assert (leader.remote[2].download_end == SNAPSHOT.offset) == established

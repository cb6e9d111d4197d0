"""Single decisions of the core at their bounds, on their own: floors, versions, back-offs, ids."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from quorum.config import QuorumConfig
from quorum.core.contract.local_events import DamageFound
from quorum.core.contract.output import VerifyLog
from quorum.core.integrity.quarantine import vote_floor_of
from quorum.core.leadership.resignation import successor_backoff_ms
from quorum.core.membership.voter_change_checks import why_not_supported
from quorum.core.positions.snapshot_index import SnapshotIndex
from quorum.core.protocol.epoch_claims import _is_called_voter
from quorum.core.state.peers import PeerTable, backoff_ms
from quorum.core.state.pending_change import ChangeKind
from quorum.core.state.process_state import ProcessState
from quorum.core.state.replica_progress import ReplicaProgress
from quorum.core.voters.versions import KRAFT_VERSION_NAME, why_not_run_with
from quorum.types import (
    BOOTSTRAP_SNAPSHOT_ID,
    OffsetAndEpoch,
    ReplicaKey,
    SnapshotId,
    VersionRange,
    Voter,
)
from tests.support.core_cluster import CoreCluster
from tests.support.core_disk import key


def core_with(**parts: object) -> Any:
    """A core that has only what one decision looks at."""
    return SimpleNamespace(**parts)


@pytest.mark.parametrize(
    ("old", "expected"),
    [
        (None, OffsetAndEpoch(20, 3)),
        (OffsetAndEpoch(19, 3), OffsetAndEpoch(20, 3)),
        (OffsetAndEpoch(90, 2), OffsetAndEpoch(20, 3)),
        (OffsetAndEpoch(21, 3), OffsetAndEpoch(21, 3)),
        (OffsetAndEpoch(5, 4), OffsetAndEpoch(5, 4)),
    ],
)
@pytest.mark.interpreted
def test_a_vote_floor_never_sinks(old: OffsetAndEpoch | None, expected: OffsetAndEpoch) -> None:
    log = SimpleNamespace(
        flushed_end=20,
        start=OffsetAndEpoch(4, 1),
        epochs=SimpleNamespace(epoch_before={20: 3}.__getitem__),
    )
    core = core_with(log=log, election=SimpleNamespace(vote_floor=old))
    assert vote_floor_of(core) == expected


@pytest.mark.interpreted
def test_a_vote_floor_is_at_least_the_log_start() -> None:
    log = SimpleNamespace(
        flushed_end=20,
        start=OffsetAndEpoch(30, 3),
        epochs=SimpleNamespace(epoch_before={30: 3}.__getitem__),
    )
    core = core_with(log=log, election=SimpleNamespace(vote_floor=None))
    assert vote_floor_of(core) == OffsetAndEpoch(30, 3)


@pytest.mark.parametrize(("voters", "is_verified"), [(1, False), (2, True), (3, True)])
def test_a_follower_with_damage_is_verified_where_others_are_left(
    voters: int, is_verified: bool
) -> None:
    """Goal: a follower has a leader, so a node remains; a lone voter continues."""
    cluster = CoreCluster(voters=range(1, voters + 1))
    cluster.elect(1)
    cluster.settle()
    node_id = voters
    cluster.call(
        node_id, lambda node: node.on_local_event(cluster.now_ms, DamageFound("a bad batch"))
    )
    seen = [each for each in cluster.members[node_id].progress if isinstance(each, VerifyLog)]
    assert bool(seen) is is_verified


@pytest.mark.parametrize(("called", "expected"), [(-1, False), (0, True), (1, True)])
@pytest.mark.interpreted
def test_a_known_candidate_may_call_any_voter_by_id(called: int, expected: bool) -> None:
    """Goal: 0 is a node like any other. See KIP-853 on the voter's id in VoteRequest."""
    core = core_with(voters=SimpleNamespace(knows=lambda _: True), me=key(9))
    request: Any = SimpleNamespace(candidate=key(2), voter=ReplicaKey(called))
    assert _is_called_voter(core, request) is expected


@pytest.mark.parametrize(
    ("lowest", "highest", "is_supported"),
    [(0, 1, True), (1, 1, True), (1, 2, True), (0, 0, False), (2, 2, False)],
)
@pytest.mark.interpreted
def test_a_replica_must_run_with_the_kraft_version_in_force(
    lowest: int, highest: int, is_supported: bool
) -> None:
    change: Any = SimpleNamespace(voter=Voter(key(4)), kind=ChangeKind.ADD)
    core = core_with(process=ProcessState())
    supported = (VersionRange(KRAFT_VERSION_NAME, lowest, highest),)
    assert (why_not_supported(core, change, supported) is None) is is_supported


@pytest.mark.parametrize(
    ("level", "problem"), [(0, False), (2, True), (3, False), (5, False), (6, True)]
)
def test_a_level_in_force_must_be_in_the_replicas_range(level: int, problem: bool) -> None:
    supported = (VersionRange("metadata.version", 3, 5),)
    assert bool(why_not_run_with(1, supported, {"metadata.version": level})) is problem


def test_a_level_that_is_not_in_use_needs_no_range() -> None:
    assert why_not_run_with(1, (), {"group.version": 0}) == ""
    assert "group.version 1" in why_not_run_with(1, (), {"group.version": 1})


def test_successors_wait_the_longer_the_later_they_are_named() -> None:
    names = [key(each) for each in range(1, 5)]
    waits = [successor_backoff_ms(names, each, 1_000) for each in (*names, key(9))]
    assert waits == [0, 125, 250, 500, 1_000]
    assert successor_backoff_ms([], key(1), 1_000) == 1_000


def test_pauses_double_up_to_sixteen_times_the_base() -> None:
    config = QuorumConfig(retry_backoff_ms=20)
    pauses = [backoff_ms(config, failures) for failures in range(8)]
    assert pauses == [20, 20, 40, 80, 160, 320, 320, 320]


def test_a_peer_is_left_alone_after_failures_until_it_answers() -> None:
    peers = PeerTable(QuorumConfig(retry_backoff_ms=20))
    assert (peers.failures(2), peers.ready_ms(2)) == (0, 0)
    peers.failed(2, 100)
    assert (peers.failures(2), peers.ready_ms(2)) == (1, 120)
    peers.failed(2, 200)
    peers.failed(3, 200)
    assert (peers.failures(2), peers.ready_ms(2)) == (2, 240)
    peers.succeeded(2)
    assert (peers.failures(2), peers.ready_ms(2), peers.failures(3)) == (0, 0, 1)
    peers.reset()
    assert (peers.failures(3), peers.ready_ms(3)) == (0, 0)


def test_a_index_keeps_the_newest_checkpoint_and_those_being_read() -> None:
    ids = [SnapshotId(each, 1) for each in (10, 20, 30)]
    snapshot_index = SnapshotIndex([ids[1], ids[0], ids[2]], {ids[0]: 7}, {ids[0]: 40}, now_ms=100)
    assert snapshot_index.ids == tuple(ids)
    assert snapshot_index.latest == ids[2]
    known = snapshot_index.get(ids[0])
    assert known is not None
    assert (known.size, known.since_ms) == (7, 60)
    assert snapshot_index.deletable_below(OffsetAndEpoch(20, 1)) == (ids[0],)
    assert snapshot_index.deletable_below(OffsetAndEpoch(99, 1)) == (ids[0], ids[1])
    snapshot_index.leased = (ids[1],)
    assert snapshot_index.deletable_below(OffsetAndEpoch(99, 1)) == (ids[0],)
    snapshot_index.add(ids[0], 0, now_ms=500)
    assert (known.size, known.since_ms) == (7, 60), "an unknown size changes nothing"
    snapshot_index.add(ids[0], 9, now_ms=500)
    assert known.size == 9
    snapshot_index.remove(ids[2])
    snapshot_index.remove(ids[2])
    assert snapshot_index.latest == ids[1]


def test_checkpoints_of_one_offset_are_ordered_by_epoch_and_the_bootstrap_one_is_none() -> None:
    early, late = SnapshotId(10, 1), SnapshotId(10, 2)
    assert SnapshotIndex([late, early]).ids == (early, late)
    assert SnapshotIndex([BOOTSTRAP_SNAPSHOT_ID]).latest is None
    assert SnapshotIndex().latest is None


def test_caught_up_means_at_the_leaders_end_now_or_at_its_last_fetch() -> None:
    """See KIP-836."""
    replica = ReplicaProgress(key(2), is_voter=True, live_since_ms=0)
    replica.note_fetch(5, now_ms=100, leader_end=6)
    assert (replica.last_caught_up_ms, replica.end_offset) == (-1, 5)
    replica.note_fetch(5, now_ms=150, leader_end=8)
    assert replica.last_caught_up_ms == -1, "it is not where the leader's end was at 100"
    replica.note_fetch(8, now_ms=200, leader_end=10)
    assert replica.last_caught_up_ms == 150
    replica.note_fetch(10, now_ms=300, leader_end=10)
    assert replica.last_caught_up_ms == 300
    replica.note_fetch(9, now_ms=400, leader_end=12)
    assert (replica.last_caught_up_ms, replica.leader_end_at_fetch) == (300, 12)


def test_a_download_ends_with_the_next_fetch_and_bounds_trimming() -> None:
    replica = ReplicaProgress(key(2), is_voter=True, live_since_ms=0, end_offset=3, download_end=9)
    assert replica.trim_position == 9
    replica.note_fetch(4, now_ms=1, leader_end=10)
    assert (replica.download_end, replica.trim_position) == (-1, 4)

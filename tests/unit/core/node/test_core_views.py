"""A node's views are correct in every role: only a leader has a leader's state."""

from __future__ import annotations

from typing import Any

import pytest

from quorum.core.contract.output import LeadershipChanged
from quorum.core.node.raft_node import RaftNode
from quorum.core.positions.download import Download
from quorum.core.positions.log_view import LogView
from quorum.core.positions.snapshot_index import SnapshotIndex
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.peer_requests import PeerRequest, Purpose
from quorum.core.state.roles import Prospective, Transfer, Unattached
from quorum.types import NO_NODE, ElectionState, NodeId, OffsetAndEpoch, SnapshotId
from tests.support.core_cluster import CoreCluster
from tests.support.core_disk import key
from tests.support.core_situations import SITUATIONS
from tests.unit.core.node.test_core_deadlines import DUE_MS, NOW_MS, core_of, follower, leader
from tests.unit.core.node.test_core_turns import CountingNode


@pytest.mark.parametrize("situation", SITUATIONS)
def test_every_view_can_be_looked_at_in_every_role(situation: str) -> None:
    cluster, node_id = SITUATIONS[situation]()
    node = cluster[node_id]
    views = {
        name: getattr(node, name)
        for name, member in vars(RaftNode).items()
        if isinstance(member, property)
    }
    assert views["me"].id == node_id
    assert views["disk_stalled_ms"] == 0
    assert views["leader_id"] == (node_id if views["is_leader"] else views["leader_id"])
    if views["role_name"] != "Leader":
        of_leaders = ("is_leader", "can_write", "is_transferring", "pending_change")
        assert not any(views[name] for name in of_leaders)
        assert (views["held_fetches"], views["uncommitted_bytes"], node.replicas()) == (0, 0, ())
    if views["role_name"] == "Prospective":
        assert views["awaits_leader"]
    assert node.voter_set_at(views["log_end"].offset).voters == views["voters"]
    assert views["voters_offset"] < views["log_end_offset"] == views["log_end"].offset


def test_a_leaders_view_shows_held_requests_and_a_transfer() -> None:
    held = {
        name: make()[0][1].held_fetches for name, make in SITUATIONS.items() if name == "leader"
    }
    assert held == {"leader": 2}
    cluster, _ = SITUATIONS["leader-transferring"]()
    assert (cluster[1].is_transferring, cluster[1].can_write) == (True, False)
    cluster, _ = SITUATIONS["leader-adding-a-voter"]()
    assert cluster[1].pending_change is not None
    cluster, _ = SITUATIONS["leader-before-durable"]()
    assert (cluster[1].role_name, cluster[1].is_leader, cluster[1].leader_id) == (
        "Leader",
        False,
        -1,
    )


def test_a_start_without_a_leader_reports_no_leader_change() -> None:
    cluster = CoreCluster()
    for member in cluster.members.values():
        assert not [each for each in member.progress if isinstance(each, LeadershipChanged)]


# In a state built by hand.


def unattached() -> CoreState:
    return core_of(Unattached(NEVER_MS))


@pytest.mark.parametrize(
    ("core", "expected"),
    [
        (core_of(follower()), True),
        (core_of(follower(has_fetched=True)), False),
        (core_of(follower(NOW_MS, has_fetched=True)), True),
        (core_of(Prospective(NEVER_MS, {}, fail_fast=True)), True),
        (unattached(), False),
        (leader(), False),
    ],
)
def test_a_node_awaits_a_leader_that_has_not_answered(core: CoreState, expected: bool) -> None:
    assert CountingNode(core).awaits_leader is expected


@pytest.mark.parametrize(("since_ms", "expected"), [(NOW_MS - 6_000, 6_000), (NOW_MS, 0)])
@pytest.mark.parametrize("is_stalled", [False, True])
def test_a_stall_counts_from_the_last_completion(
    since_ms: int, expected: int, is_stalled: bool
) -> None:
    core = unattached()
    core.disk.watch.since_ms, core.disk.watch.is_stalled = since_ms, is_stalled
    assert CountingNode(core).disk_stalled_ms == (expected if is_stalled else 0)


@pytest.mark.parametrize(
    ("start", "snapshots", "expected"),
    [
        (0, (), False),
        (0, (2,), False),
        (1, (), True),
        (5, (), True),
        (5, (4,), True),
        (5, (5,), False),
        (5, (6,), False),
        (5, (4, 6), False),
    ],
)
def test_a_trimmed_log_lacks_a_snapshot_that_reaches_its_start(
    start: int, snapshots: tuple[int, ...], expected: bool
) -> None:
    core = unattached()
    core.log = LogView(OffsetAndEpoch(start, 1), OffsetAndEpoch(start, 1), ())
    core.snapshots = SnapshotIndex(tuple(SnapshotId(each, 1) for each in snapshots))
    assert CountingNode(core).lacks_snapshot is expected


def test_a_download_shows_while_there_is_one() -> None:
    core = core_of(follower())
    assert not CountingNode(core).is_downloading
    core.following.download = Download(SnapshotId(5, 4), 4)
    assert CountingNode(core).is_downloading


@pytest.mark.parametrize(("voted", "expected"), [(None, NO_NODE), (0, 0), (3, 3)])
def test_a_vote_shows(voted: NodeId | None, expected: NodeId) -> None:
    core = unattached()
    core.adopt_election(ElectionState(4, voted=None if voted is None else key(voted)))
    assert CountingNode(core).voted_id == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"can_write": True}, (True, True, False)),
        ({"can_write": False}, (True, False, False)),
        ({"established": False}, (False, False, False)),
        (
            {
                "can_write": True,
                "transfer": Transfer(key(2), 1, DUE_MS, PeerRequest(2, Purpose.TRANSFER)),
            },
            (True, False, True),
        ),
    ],
)
def test_a_leader_writes_unless_it_transfers(
    fields: dict[str, Any], expected: tuple[bool, bool, bool]
) -> None:
    node = CountingNode(leader(**fields))
    assert (node.is_leader, node.can_write, node.is_transferring) == expected


def test_uncommitted_bytes_are_those_of_a_leader() -> None:
    assert CountingNode(leader(uncommitted_bytes=7)).uncommitted_bytes == 7
    assert CountingNode(core_of(follower())).uncommitted_bytes == 0

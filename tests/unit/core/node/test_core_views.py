"""A node's views are correct in every role: only a leader has a leader's state."""

from __future__ import annotations

import pytest

from quorum.core.contract.output import LeadershipChanged
from quorum.core.node.raft_node import RaftNode
from tests.support.core_cluster import CoreCluster
from tests.support.core_situations import SITUATIONS


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
        of_leaders = ("is_leader", "can_write", "is_handing_over", "pending_change")
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
    cluster, _ = SITUATIONS["leader-handing-over"]()
    assert (cluster[1].is_handing_over, cluster[1].can_write) == (True, False)
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

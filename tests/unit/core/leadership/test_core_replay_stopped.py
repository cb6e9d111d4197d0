"""A replica that cannot apply what is committed: it votes and acknowledges, and never leads."""

from __future__ import annotations

from quorum.core.contract.events import RoleChanged
from quorum.core.contract.local_events import ReplayStopped, TransferLeadership
from quorum.types import NodeId
from tests.support.core_cluster import CoreCluster

STOPPED = ReplayStopped("offset 7: unknown record type")


def stop_replay(cluster: CoreCluster, node_id: NodeId, event: ReplayStopped = STOPPED) -> None:
    """The state machine of a node reports."""
    cluster.call(node_id, lambda node: node.on_local_event(cluster.now_ms, event))


def roles_of(cluster: CoreCluster, node_id: NodeId) -> list[str]:
    events = cluster.members[node_id].events
    return [each.role for each in events if isinstance(each, RoleChanged)]


def test_a_leader_whose_replay_stops_resigns_and_another_follows() -> None:
    """Goal: a leader that answers no write does not keep the others from having one."""
    cluster = CoreCluster()
    cluster.elect(1)
    stop_replay(cluster, 1)
    cluster.advance(2_000)
    (leader,) = cluster.leaders()
    assert leader in (2, 3)
    assert "Resigned" in roles_of(cluster, 1)


def test_a_follower_whose_replay_stopped_votes_and_does_not_campaign() -> None:
    """Goal: the other one is elected, with its vote. Method: its leader dies."""
    cluster = CoreCluster()
    cluster.elect(1)
    stop_replay(cluster, 2)
    cluster.crash(1)
    cluster.advance(20_000)
    assert cluster.leaders() == [3]
    assert not {"Prospective", "Candidate", "Leader"} & set(roles_of(cluster, 2))


def test_it_refuses_a_transfer() -> None:
    """Goal: the leader leads on at once."""
    cluster = CoreCluster()
    cluster.elect(1)
    cluster.propose(1)
    cluster.settle()
    stop_replay(cluster, 3)
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, TransferLeadership(7, 3)))
    cluster.settle()
    assert cluster.leaders() == [1]
    assert cluster[1].can_write


def test_a_candidate_whose_replay_stops_never_begins_to_lead() -> None:
    """Goal: no record of its epoch. Method: replay stops while it asks for votes."""
    cluster = CoreCluster()
    deadline_ms = cluster.members[1].deadline_ms
    assert deadline_ms is not None
    cluster.now_ms = deadline_ms
    cluster.tick(1)
    while cluster[1].role_name != "Candidate":
        assert cluster.deliver(count=1)
    stop_replay(cluster, 1)
    cluster.settle()
    assert roles_of(cluster, 1)[-2:] == ["Leader", "Resigned"]
    assert cluster[1].log_end_offset == 0
    cluster.advance(20_000)
    assert cluster.leaders() in ([2], [3])


def test_a_lone_voter_resigns_when_its_replay_stops() -> None:
    """Goal: no leader rather than one that answers nothing. Method: one voter, well again later."""
    cluster = CoreCluster((1,))
    cluster.elect(1)
    stop_replay(cluster, 1)
    cluster.advance(20_000)
    assert cluster.leaders() == []
    stop_replay(cluster, 1, ReplayStopped(""))
    cluster.advance(20_000)
    assert cluster.leaders() == [1]


def test_it_may_lead_once_it_applies_again() -> None:
    """Goal: a checkpoint that it can load lifts the bar."""
    cluster = CoreCluster()
    cluster.elect(1)
    stop_replay(cluster, 2)
    stop_replay(cluster, 2, ReplayStopped(""))
    cluster.isolate(3)
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, TransferLeadership(7, 2)))
    cluster.advance(1_000)
    assert cluster.leaders() == [2]

"""The leader's endpoints in a response: its own, its voter record's, or those a follower knows.

The receiver of such a response may know no other node (KIP-853, bootstrap servers).
"""

from __future__ import annotations

from quorum.core.contract.local_events import ListenerEndpoints
from quorum.core.messages.message_types import Message
from quorum.core.messages.vote_messages import VoteRequest, VoteResponse
from quorum.types import Endpoint
from tests.support.core_cluster import CoreCluster
from tests.support.core_disk import key, voter

MOVED = (Endpoint("CONTROLLER", "moved", 9999), Endpoint("CLIENT", "moved", 9092))


def led() -> CoreCluster:
    cluster = CoreCluster()
    cluster.elect(1)
    cluster.advance(600)
    return cluster


def endpoints(cluster: CoreCluster, node_id: int) -> tuple[Endpoint, ...]:
    """Return the endpoints in a refusal of node ``node_id``."""
    asked: Message = VoteRequest(
        9, "other", key(9), key(node_id), 1, cluster[node_id].log_end, pre_vote=True
    )
    cluster.call(node_id, lambda node: node.receive(cluster.now_ms, 9, asked))
    (answer,) = cluster.sent_by(node_id, VoteResponse)[-1:]
    assert answer.leader_id == cluster[node_id].leader_id
    return answer.leader_endpoints


def test_a_leaders_endpoints_come_from_its_voter_record_until_it_knows_its_own() -> None:
    cluster = led()
    assert endpoints(cluster, 1) == voter(1).endpoints
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, ListenerEndpoints(MOVED)))
    assert endpoints(cluster, 1) == MOVED


def test_a_follower_reports_its_leaders_endpoints_and_not_its_own() -> None:
    cluster = led()
    cluster.call(2, lambda node: node.on_local_event(cluster.now_ms, ListenerEndpoints(MOVED)))
    assert endpoints(cluster, 2) == voter(1).endpoints


def test_without_a_leader_no_endpoints_are_reported() -> None:
    cluster = CoreCluster()
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, ListenerEndpoints(MOVED)))
    assert cluster[1].leader_id == -1
    assert endpoints(cluster, 1) == ()

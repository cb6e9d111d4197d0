"""A node in every role, and a valid message of every type that it might receive then."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from quorum.config import QuorumConfig
from quorum.core.contract.local_events import AddVoter, Resign, TransferLeadership
from quorum.core.messages.bootstrap_messages import BootstrapRequest, BootstrapResponse
from quorum.core.messages.chain_messages import ChainDigestRequest, ChainDigestResponse
from quorum.core.messages.epoch_messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
)
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.message_types import Message
from quorum.core.messages.read_messages import ReadPositionRequest, ReadPositionResponse
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest, FetchSnapshotResponse
from quorum.core.messages.vote_messages import VoteRequest, VoteResponse
from quorum.core.messages.voter_messages import (
    AddVoterRequest,
    RemoveVoterRequest,
    UpdateVoterRequest,
    VoterChangeResponse,
)
from quorum.core.node.raft_node import RaftNode
from quorum.core.state.core_state import CoreState
from quorum.core.voters.versions import OWN_KRAFT_VERSIONS
from quorum.errors import ErrorCode
from quorum.types import DigestAt, Endpoint, NodeId, OffsetAndEpoch, ReplicaKey, VersionRange, Voter
from simulation.harness.core_disk import Disk
from tests.support.core_cluster import CLUSTER, CoreCluster
from tests.support.core_disk import FRESH, disk_with, key, voter

SNAPSHOT = OffsetAndEpoch(5, 1)
LOG = "1:a 1:b 1:c 2:d"


def _cluster(observers: tuple[NodeId, ...] = (), **more: Any) -> CoreCluster:
    disks = {each: disk_with(LOG) for each in (1, 2, 3, *observers)}
    return CoreCluster(observers=observers, disks={**disks, **more.pop("disks", {})}, **more)


def _led(observers: tuple[NodeId, ...] = ()) -> CoreCluster:
    cluster = _cluster(observers)
    cluster.elect(1)
    cluster.advance(600)
    cluster.propose(1)
    cluster.settle()
    return cluster


def _until(cluster: CoreCluster, node_id: NodeId, is_so: Callable[[], bool]) -> None:
    """Let only that node's timers fire; deliver one message at a time until it is so."""
    for _ in range(200):
        if is_so():
            return
        if not cluster.deliver(count=1):
            deadline_ms = cluster.members[node_id].deadline_ms
            assert deadline_ms is not None
            cluster.now_ms = max(cluster.now_ms, deadline_ms)
            cluster.tick(node_id)
    raise AssertionError(f"node {node_id} is {cluster[node_id].role_name}")


def _becoming(role: str) -> tuple[CoreCluster, NodeId]:
    cluster = _cluster()
    _until(cluster, 1, lambda: cluster[1].role_name == role)
    return cluster, 1


def _leader_before_durable() -> tuple[CoreCluster, NodeId]:
    cluster = _cluster()
    _until(cluster, 1, lambda: cluster[1].role_name == "Candidate")
    cluster.slow_disks.add(1)
    _until(cluster, 1, lambda: cluster[1].role_name == "Leader")
    assert not cluster[1].is_leader
    return cluster, 1


def _leader() -> tuple[CoreCluster, NodeId]:
    cluster = _led()
    assert cluster[1].held_fetches == 2
    return cluster, 1


def _noticed(event: Any, observers: tuple[NodeId, ...] = ()) -> tuple[CoreCluster, NodeId]:
    cluster = _led(observers)
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, event))
    return cluster, 1


def _voter_to_be() -> Voter:
    return Voter(key(9), (Endpoint("CONTROLLER", "elsewhere", 1),))


def _bootstrap_state() -> tuple[CoreCluster, NodeId]:
    cluster = CoreCluster(disks=dict.fromkeys((1, 2, 3), FRESH))
    return cluster, 1


def _downloading() -> tuple[CoreCluster, NodeId]:
    serving = disk_with(
        "2:d 2:e", start=SNAPSHOT, snapshots={SNAPSHOT: 40}, high_watermark=SNAPSHOT.offset
    )
    other = disk_with(
        "2:d 2:e", start=SNAPSHOT, snapshots={SNAPSHOT: 40}, high_watermark=SNAPSHOT.offset
    )
    cluster = CoreCluster(
        disks={1: serving, 2: other, 3: Disk()}, config=QuorumConfig(snapshot_chunk_bytes=16)
    )
    cluster.hold |= {(1, 3)}
    cluster.elect(1)
    cluster.hold.clear()
    _until(cluster, 1, lambda: cluster[3].is_downloading)
    return cluster, 3


SITUATIONS: dict[str, Callable[[], tuple[CoreCluster, NodeId]]] = {
    "unattached": lambda: (_cluster(), 1),
    "bootstrap_state": _bootstrap_state,
    "prospective": lambda: _becoming("Prospective"),
    "candidate": lambda: _becoming("Candidate"),
    "leader-before-durable": _leader_before_durable,
    "leader": _leader,
    "leader-transferring": lambda: _noticed(TransferLeadership(7, 2)),
    "leader-adding-a-voter": lambda: _noticed(AddVoter(7, _voter_to_be()), (9,)),
    "resigned": lambda: _noticed(Resign()),
    "follower": lambda: (_led(), 2),
    "observer": lambda: (_led((9,)), 9),
    "downloading": _downloading,
}


def waiting_ids(core: CoreState) -> list[int]:
    """Return the ids of all requests whose response this node waits for."""
    return [each.request_id for each in core.requests]


def intact_messages(node: RaftNode, peer: NodeId, rng: random.Random) -> dict[type, Message]:
    """Return a message of every type from ``peer`` that is valid for this node now, or nearly."""
    core = node._core
    me, epoch, end = core.me, core.epoch, core.log.end
    asked = rng.choice([*waiting_ids(core), rng.randrange(1 << 40)])
    leader = core.leader_id
    who = key(peer)
    fetch = FetchRequest(
        rng.randrange(1 << 40), CLUSTER, who, epoch, end.offset, end.epoch, core.high_watermark,
        rng.choice((0, 500)),
    )  # fmt: skip
    none = ErrorCode.NONE
    made: list[Message] = [
        BootstrapRequest(1, CLUSTER, who, me, epoch, bytes([peer]) * 16),
        BootstrapResponse(asked, none, leader, epoch, bytes([peer]) * 16),
        VoteRequest(1, CLUSTER, who, me, epoch + 1, end, pre_vote=False),
        VoteResponse(asked, none, leader, epoch, granted=True),
        BeginQuorumEpochRequest(1, CLUSTER, me, who, epoch + (leader != peer)),
        BeginQuorumEpochResponse(
            asked, none, leader, epoch, supported=(OWN_KRAFT_VERSIONS, VersionRange("f", 0, 1))
        ),
        EndQuorumEpochRequest(1, CLUSTER, who, epoch, (me,), campaign_now=rng.random() < 0.5),
        EndQuorumEpochResponse(asked, none, leader, epoch),
        fetch,
        FetchResponse(asked, none, leader, epoch, core.high_watermark),
        FetchSnapshotRequest(1, CLUSTER, who, epoch, SNAPSHOT, 0, 100),
        FetchSnapshotResponse(
            asked, none, leader, epoch, SNAPSHOT, 40, 0, chunk=b"c" * 16, file_digest=b"d"
        ),
        ReadPositionRequest(1, CLUSTER, who, epoch),
        ReadPositionResponse(asked, none, leader, epoch, 3),
        ChainDigestRequest(1, CLUSTER, who, epoch, (3, 4)),
        ChainDigestResponse(asked, none, leader, epoch, (3,), (DigestAt(3, b"d"),), replica=who),
        UpdateVoterRequest(1, CLUSTER, voter(peer), epoch),
        AddVoterRequest(1, CLUSTER, _voter_to_be(), epoch),
        RemoveVoterRequest(1, CLUSTER, who, ReplicaKey(peer, b"e" * 16), epoch),
        VoterChangeResponse(asked, none, leader, epoch),
    ]
    return {type(each): each for each in made}

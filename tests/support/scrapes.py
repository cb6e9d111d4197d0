"""The views that gauges read in tests: a follower of a cluster of three, in plain values."""

from __future__ import annotations

from types import SimpleNamespace as Space
from typing import Any
from unittest.mock import MagicMock

from prometheus_client import CollectorRegistry

from metrics.collectors import ScrapeCollector
from metrics.health import Check
from quorate.server.counters import COUNTERS
from quorate.server.gauges import GAUGES
from quorate.server.scrape import Scrape
from quorum.core.node.raft_node import RaftNode
from quorum.core.state.replica_progress import ReplicaView
from quorum.core.state.replica_table import TreeView
from quorum.transport.counters import TransportCounters
from quorum.types import OffsetAndEpoch, ReplicaKey, SnapshotId
from statemachine.image import MetadataImage

ME = ReplicaKey(1, b"1" * 16)


def view(
    node_id: int, *, is_voter: bool = True, end: int = 95, fetched_ms: int = -1
) -> ReplicaView:
    return ReplicaView(ReplicaKey(node_id, bytes(16)), is_voter, end, fetched_ms, -1)


def scrape(
    *replicas: ReplicaView, image: object = None, snapshots: Any = None, **changes: object
) -> Scrape:
    """Return the views; ``changes`` replaces attributes of the core."""
    node: dict[str, object] = {
        "role_name": "Follower",
        "is_voter": True,
        "me": ME,
        "leader_id": 2,
        "voted_id": -1,
        "epoch": 7,
        "can_write": False,
        "high_watermark": 90,
        "log_start": OffsetAndEpoch(10, 1),
        "log_end": OffsetAndEpoch(100, 6),
        "voters": (1, 2, 3),
        "voters_offset": 0,
        "chain": Space(
            equal=1, different=0, too_early=0, unknown=0, resolution=None, quarantined_log=""
        ),
        "snapshots": (SnapshotId(50, 1),),
        "held_fetches": 0,
        "replicas": lambda: replicas,
        "tree": lambda: TreeView((), (), -1),
    }
    report = Space(losses=(), recovery=Space(restored_start=None))
    files: Any = snapshots or Space(size=lambda _: 2048, quarantined=())
    stores = Space(
        log=Space(segment_bases=(0,), size_bytes=10),
        directory="/",
        snapshots=files,
        report=report,
        identity=Space(cluster_id="abc"),
    )
    controller = Space(
        image=image or MetadataImage(),
        checkpoint=Space(changes=Space(ratio=0.25)),
        queue_length=0,
        groups_in_flight=0,
        config=Space(queue_commands_max=5, groups_in_flight_max=6),
    )
    replica: Any = Space(
        node=MagicMock(spec=RaftNode, **node | changes),
        stores=stores,
        controller=controller,
        checkpoints=Space(age_ms=3000),
    )
    others: Any = Space(restarts=0, passes=1, read_bytes=2, findings=3, age_seconds=4.0, refused=5)
    return Scrape(replica, 1000, TransportCounters(), others, others, (), 9, lambda: 0.5, others)


def collect(found: Scrape, *checks: Check) -> CollectorRegistry:
    registry = CollectorRegistry()
    ScrapeCollector(registry, GAUGES + COUNTERS, lambda: found, checks)
    return registry

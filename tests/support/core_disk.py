"""Names of replicas in tests of the core, and disks written as ``epoch:value`` texts."""

from __future__ import annotations

from quorum.types import (
    LOG_BEGINNING,
    ElectionState,
    Endpoint,
    NodeId,
    OffsetAndEpoch,
    ReplicaKey,
    SnapshotId,
    Voter,
)
from simulation.harness.core_disk import BOOTSTRAPPED, Disk, plain_log

FRESH = Disk(ElectionState())
"""Return a disk as formatted, before the bootstrap of the quorum."""


def key(node_id: NodeId) -> ReplicaKey:
    """Return the replica key that the harness gives to a node."""
    return ReplicaKey(node_id, bytes(15) + bytes([node_id % 256]))


def voter(node_id: NodeId) -> Voter:
    return Voter(key(node_id), (Endpoint("CONTROLLER", f"node{node_id}", 9000),))


def disk_with(
    log: str = "",
    *,
    start: OffsetAndEpoch = LOG_BEGINNING,
    epoch: int = 0,
    leader: NodeId = -1,
    voted: NodeId | None = None,
    vote_floor: OffsetAndEpoch | None = None,
    snapshots: dict[SnapshotId, int] | None = None,
    high_watermark: int = 0,
) -> Disk:
    """Return a disk whose log holds ``log`` (``"1:a 2:b"``, epoch:value) from ``start`` on.

    The stored epoch is ``epoch``, or that of the last record if that is higher.
    """
    entries = tuple((int(item.split(":")[0]), None) for item in log.split())
    last_epoch = max(epoch, entries[-1][0] if entries else start.epoch)
    election = ElectionState(
        last_epoch,
        leader,
        key(voted) if voted is not None else None,
        vote_floor,
        BOOTSTRAPPED.bootstrap_state if not last_epoch else None,
    )
    return Disk(
        election,
        log=plain_log(start) + entries,
        start=start,
        snapshots=snapshots or {},
        high_watermark=high_watermark,
    )

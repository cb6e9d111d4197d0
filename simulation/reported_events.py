"""Count the events that replicas report, and check some of them."""

from __future__ import annotations

from quorum.core.contract.events import (
    DownloadEnded,
    DownloadStarted,
    Event,
    LogDiverged,
    ReplicaRegressed,
    RoleChanged,
    TransferEnded,
    UpstreamChanged,
    VoterChangeEnded,
    VoterDisqualified,
)
from quorum.core.contract.outcomes import DownloadOutcome, TransferOutcome
from quorum.errors import ErrorCode
from quorum.types import NodeId
from simulation.environment import Environment
from simulation.invariants.violation import Violation
from simulation.node_disk import NodeDisk


def count_event(cluster: Environment, node_id: NodeId, disk: NodeDisk, event: Event) -> None:
    """Count an event that a node reports.

    Raises:
        Violation: The node disqualified its own disk without a reason.
    """
    counts = cluster.counts
    if type(event) is LogDiverged:
        counts.truncations += event.end_offset < event.old_end.offset
    elif type(event) is DownloadEnded:
        counts.installs += event.outcome is DownloadOutcome.INSTALLED
        counts.resumed_installs += (
            event.outcome is DownloadOutcome.INSTALLED and event.snapshot_id == disk.resumed
        )
        disk.resumed = None
    elif type(event) is DownloadStarted:
        counts.downloads_resumed += event.position > 0
        disk.resumed = event.snapshot_id if event.position else None
    elif type(event) is RoleChanged:
        counts.leaders += event.role == "Leader"
    elif type(event) is UpstreamChanged:
        counts.upstream_changes += 1
    elif type(event) is ReplicaRegressed:
        counts.regressions += 1
    elif type(event) is TransferEnded:
        counts.leadership_transfers += event.outcome is TransferOutcome.SUPERSEDED
    elif type(event) is VoterChangeEnded:
        counts.voter_changes += event.error == ErrorCode.NONE
    elif type(event) is VoterDisqualified:
        _disqualified(cluster, node_id, disk, event.reason)


def _disqualified(cluster: Environment, node_id: NodeId, disk: NodeDisk, reason: str) -> None:
    counts = cluster.counts
    counts.disqualified += 1
    cluster.suspend_faults(0)
    counts.rollbacks_detected += disk.is_from_the_past
    disk.is_from_the_past = False
    if not disk.has_lost_its_vote:
        raise Violation(
            "rightly-disqualified", "a voter's own disk is disqualified", node=node_id, why=reason
        )

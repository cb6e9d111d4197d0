"""The leader's side of FetchSnapshot: choose the chunk to read, or refuse.

No state is kept per transfer. The runtime reads the file, adds size, bytes, checksum and
file digest, and holds the lease that keeps the file from deletion.

See: KIP-630 (630.10, 630.12); docs/architecture.md (A replica that fell behind).
"""

from __future__ import annotations

from quorum.core.messages.read_messages import ReadRound
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest, ServeChunk
from quorum.core.protocol.refusals import has_wrong_cluster, refusal_of_leader_request, refuse
from quorum.core.replication.read_confirmation import note_echo
from quorum.core.state.core_state import CoreState
from quorum.core.state.replica_table import note_contact, progress_for
from quorum.core.state.roles import Leader
from quorum.errors import ErrorCode
from quorum.types import BOOTSTRAP_SNAPSHOT_ID, NO_NODE, NodeId


def on_fetch_snapshot(core: CoreState, sender: NodeId, request: FetchSnapshotRequest) -> None:
    """Let the runtime read a chunk for a replica, or refuse the request."""
    leader = core.role
    error = refusal_of_fetch_snapshot(
        core, request, serves=isinstance(leader, Leader) and leader.established
    )
    if error is not None or not isinstance(leader, Leader):
        refuse(core, sender, request, error or ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return
    if request.replica.id != NO_NODE:
        progress = progress_for(
            core, leader, request.replica, is_disqualified=request.is_disqualified
        )
        progress.download_end = request.snapshot_id.offset
        note_contact(core, leader, progress)
        note_echo(core, leader, progress, request.read_round)
    core.send(sender, chunk_for(core, request, leader.reads.stamp))


def chunk_for(core: CoreState, request: FetchSnapshotRequest, read_round: ReadRound) -> ServeChunk:
    """Return what the runtime is to read for a request that is not refused."""
    return ServeChunk(
        request.request_id,
        core.leader_id,
        core.epoch,
        request.snapshot_id,
        request.position,
        min(request.max_bytes, core.config.snapshot_chunk_bytes),
        read_round,
    )


def refusal_of_fetch_snapshot(
    core: CoreState, request: FetchSnapshotRequest, *, serves: bool
) -> ErrorCode | None:
    """Return what is invalid about a request, its epoch, its receiver, or the file."""
    if has_wrong_cluster(core, request.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    if request.max_bytes < 1 or request.replica.id < NO_NODE or request.replica.id == core.me.id:
        return ErrorCode.INVALID_REQUEST
    error = refusal_of_leader_request(core, request.epoch, leads=serves)
    if error is not None:
        return error
    indexed = core.snapshots.get(request.snapshot_id)
    if indexed is None or request.snapshot_id == BOOTSTRAP_SNAPSHOT_ID:
        return ErrorCode.SNAPSHOT_NOT_FOUND
    if request.position < 0 or 0 < indexed.size <= request.position:
        return ErrorCode.POSITION_OUT_OF_RANGE
    return None

"""A checkpoint that an operator asks for: written now, due or not."""

from __future__ import annotations

import asyncio

from quorate.replica.replica import Replica
from quorate.services.errors import RequestRefusedError
from quorate.services.ports import SnapshotMade
from quorum.errors import DiskFullError, ErrorCode
from quorum.types import OffsetAndEpoch
from snapshot.writer import CheckpointCancelled


async def create_snapshot(replica: Replica, *, dry_run: bool) -> SnapshotMade:
    """Implement ``ServedNode.create_snapshot``; on the event loop, which is the driver's thread."""
    provenance = replica.controller.image.provenance
    wanted = OffsetAndEpoch(provenance.end_offset, provenance.epoch)
    store, checkpoints = replica.stores.snapshots, replica.checkpoints
    newest = store.latest()
    if newest is not None and newest.offset >= wanted.offset:
        return SnapshotMade(newest, store.size(newest), is_new=False)
    if checkpoints.is_writing:
        raise _later("a checkpoint is being written; ask again when it is done")
    if checkpoints.space.is_waiting:
        raise _refused("the disk has no room for a checkpoint")
    if replica.node.flushed_end_offset < wanted.offset:
        raise _later("the log below it is not on this node's disk yet; ask again")
    if dry_run:
        return SnapshotMade(wanted, 0, is_new=True)
    snapshot_id = checkpoints.write_now()
    writing = checkpoints.writing
    if snapshot_id is None or writing is None:
        raise _refused("none can be written: the disk is full, or the log's digest is not known")
    try:
        # The call may end before the write does, which goes on.
        info = await asyncio.shield(asyncio.wrap_future(writing))
    except (DiskFullError, CheckpointCancelled) as error:
        raise _refused(f"it could not be written: {error}") from error
    return SnapshotMade(info.snapshot_id, info.size_bytes, is_new=True)


def _later(cause: str) -> RequestRefusedError:
    """Refuse for now: a client asks again until its deadline."""
    return RequestRefusedError(ErrorCode.RESOURCE_EXHAUSTED, cause)


def _refused(cause: str) -> RequestRefusedError:
    return RequestRefusedError(ErrorCode.UNKNOWN_SERVER_ERROR, cause)

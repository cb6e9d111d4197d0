"""A checkpoint download to a nearly full disk leaves enough space to install it."""

from __future__ import annotations

import pytest

from quorum.core.contract.output import (
    BeginDownload,
    Effect,
    ReplaceLogWith,
    SealDownload,
    WriteChunk,
)
from quorum.errors import DiskFullError
from quorum.log.config import LogConfig
from quorum.runtime.ports import WriteGroup
from quorum.types import OffsetAndEpoch
from simulation.memory_filesystem import Faults
from snapshot.config import SnapshotConfig
from snapshot.download import RESERVE_BYTES
from tests.support.lone_replica import LoneReplica
from tests.unit.replica.test_checkpoint_space import change

CHUNK_BYTES = 50_000


def sender() -> tuple[OffsetAndEpoch, bytes]:
    """A checkpoint far above what a fresh replica has."""
    rare = SnapshotConfig(min_changed_records_ratio=0.5, max_bytes_between=100 << 20)
    bench = LoneReplica(snapshot=rare).boot().lead()
    for n in range(40):
        assert bench.write(change(n, resources=40, size=10_000))
    snapshot_id = bench.replica.checkpoints.write_now()
    assert snapshot_id is not None
    return snapshot_id, bench.fs.read_bytes(bench.stores.snapshots.path(snapshot_id))


def receiver(room_bytes: int) -> LoneReplica:
    """One with a log of several segments, and so much room on its disk."""
    bench = LoneReplica(log=LogConfig(segment_bytes=20_000)).boot().lead()
    for n in range(10):
        assert bench.write(change(n, size=10_000))
    bench.fs.faults = Faults(capacity_bytes=bench.fs.used_bytes() + room_bytes)
    return bench


def download(bench: LoneReplica, snapshot_id: OffsetAndEpoch, data: bytes) -> list[Effect]:
    """What the core asks of the disk, in its order."""
    chunks = [
        WriteChunk(snapshot_id, at, data[at : at + CHUNK_BYTES])
        for at in range(0, len(data), CHUNK_BYTES)
    ]
    return [BeginDownload(snapshot_id), *chunks, SealDownload(snapshot_id)]


def test_a_download_does_not_take_the_last_of_a_disk() -> None:
    """Goal: others on this disk, and the next start, find room. Method: a chunk too much."""
    snapshot_id, data = sender()
    bench = receiver(len(data) // 2 + RESERVE_BYTES)
    with pytest.raises(DiskFullError, match="in reserve"):
        bench.replica.persistence_of(bench.stores).execute(
            [WriteGroup(1, tuple(download(bench, snapshot_id, data)))]
        )
    free = bench.fs.free_bytes(bench.stores.directory)
    assert free is not None
    assert RESERVE_BYTES <= free < RESERVE_BYTES + CHUNK_BYTES
    bench.boot()
    found = bench.stores.report.download
    assert found is not None
    room = len(data) // 2 + RESERVE_BYTES
    assert bench.fs.free_bytes(bench.stores.directory) == room - found.size_bytes
    bench.stores.snapshots.abandon_download(snapshot_id)
    assert bench.fs.free_bytes(bench.stores.directory) == room


def test_what_a_download_leaves_is_enough_to_install_it() -> None:
    """Goal: a nearly full disk is helped by it, not stopped half-way. Method: no byte more than the
    file and the reserve.
    """
    snapshot_id, data = sender()
    bench = receiver(len(data) + RESERVE_BYTES)
    effects = [*download(bench, snapshot_id, data), ReplaceLogWith(snapshot_id)]
    bench.complete(WriteGroup(1, tuple(effects)))
    assert bench.stores.log.start == snapshot_id
    free = bench.fs.free_bytes(bench.stores.directory)
    assert free is not None
    assert free > RESERVE_BYTES + 50_000, "the old log's space is free"

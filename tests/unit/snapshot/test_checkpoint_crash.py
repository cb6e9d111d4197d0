"""Power lost at any step: a final name is either absent or holds a whole, intact checkpoint."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from quorum.errors import DiskFullError
from quorum.types import SnapshotId
from simulation.memory_filesystem import (
    KEEP_ALL,
    LOSE_ALL,
    REORDERED,
    TORN_TAIL,
    CrashMode,
    Faults,
    MemoryFileSystem,
    PowerLost,
)
from snapshot.format import CheckpointHead, checkpoint_batches
from snapshot.store import DirectorySnapshotStore
from snapshot.verifier import CheckpointVerifier
from snapshot.writer import write_checkpoint

DIRECTORY = Path("/partition")
OLD, NEW = SnapshotId(10, 1), SnapshotId(20, 1)
VALUES = [b"%03d" % n * 1000 for n in range(200)]
WHOLE = b"".join(b for b, _ in checkpoint_batches(NEW, CheckpointHead(9), VALUES))


def digest_of_whole() -> bytes:
    verifier = CheckpointVerifier(snapshot_id=NEW)
    verifier.feed(WHOLE)
    return verifier.finish().digest


DIGEST = digest_of_whole()


def write(fs: MemoryFileSystem, _store: DirectorySnapshotStore) -> None:
    write_checkpoint(fs, DIRECTORY, NEW, values=VALUES, last_contained_log_timestamp=9)


def download(_fs: MemoryFileSystem, store: DirectorySnapshotStore) -> None:
    store.begin_download(NEW)
    for position in range(0, len(WHOLE), 200_000):
        store.write_chunk(NEW, position, WHOLE[position : position + 200_000])
    store.seal_download(NEW)


def go_on(store: DirectorySnapshotStore, *, is_finished: bool) -> None:
    """Take a download up where power loss left it, and end it: what was kept is of it."""
    found = store.recover_download()
    assert found is None or not is_finished
    if found is None or not found.size_bytes:
        return
    assert found.size_bytes + found.cut_bytes <= len(WHOLE)
    for position in range(found.size_bytes, len(WHOLE), 200_000):
        store.write_chunk(NEW, position, WHOLE[position : position + 200_000])
    store.seal_download(NEW, DIGEST)


def retire(_fs: MemoryFileSystem, store: DirectorySnapshotStore) -> None:
    store.delete([OLD])


def prepared(clock) -> tuple[MemoryFileSystem, DirectorySnapshotStore]:
    fs = MemoryFileSystem()
    fs.make_directory(DIRECTORY)
    write_checkpoint(fs, DIRECTORY, OLD, values=[b"old"], last_contained_log_timestamp=1)
    return fs, DirectorySnapshotStore(fs, DIRECTORY, clock)


@pytest.mark.parametrize("mode", [LOSE_ALL, TORN_TAIL, REORDERED, KEEP_ALL])
@pytest.mark.parametrize("action", [write, download, retire])
def test_power_lost_after_every_step(
    action: Callable[[MemoryFileSystem, DirectorySnapshotStore], None], mode: CrashMode, clock
) -> None:
    finished = False
    for step in itertools.count():
        fs, store = prepared(clock)
        fs.faults = Faults(stop_after_call=step)
        try:
            action(fs, store)
            finished = True
        except PowerLost:
            finished = False
        fs.crash(random.Random(step), mode)
        store = DirectorySnapshotStore(fs, DIRECTORY, clock)
        store.clean_up()
        go_on(store, is_finished=finished or action is not download)
        for snapshot_id in store.list():
            assert store.verify(snapshot_id).records == (200 if snapshot_id == NEW else 1)
        assert store.quarantined == ()
        assert len(fs.list_directory(DIRECTORY)) == len(store.list())
        if finished:
            break
    assert step >= 3
    expected = () if action is retire else (OLD, NEW)
    assert store.list() == expected


@pytest.mark.parametrize("action", [write, download])
def test_a_full_disk_leaves_room_for_another_try(
    action: Callable[[MemoryFileSystem, DirectorySnapshotStore], None], clock
) -> None:
    fs, store = prepared(clock)
    used = fs.used_bytes()
    fs.faults = Faults(capacity_bytes=used + len(WHOLE) // 2)
    with pytest.raises(DiskFullError):
        action(fs, store)
    store.abandon_download(NEW)
    assert store.list() == (OLD,)
    assert fs.used_bytes() == used
    fs.faults = Faults()
    action(fs, store)
    assert store.list() == (OLD, NEW)

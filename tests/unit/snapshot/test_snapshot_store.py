"""The directory of checkpoints: serving, leases, downloads, retirement, quarantine."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from quorum.errors import QuorumUsageError, SnapshotCorruptError, StorageError
from quorum.ports import SnapshotStore
from quorum.types import ReplicaKey, SnapshotId, Voter
from snapshot.config import SnapshotConfig
from snapshot.naming import FileState, file_name
from snapshot.reader import CheckpointReader
from snapshot.store import DirectorySnapshotStore
from snapshot.writer import CheckpointInfo, write_checkpoint
from tests.support.recording_filesystem import RecordingFileSystem

A, B, C = SnapshotId(10, 1), SnapshotId(20, 1), SnapshotId(20, 2)
VOTERS = (Voter(ReplicaKey(1, b"d" * 16)), Voter(ReplicaKey(2, b"e" * 16)))


@pytest.fixture
def store(fs: RecordingFileSystem, directory: Path, clock) -> DirectorySnapshotStore:
    return DirectorySnapshotStore(fs, directory, clock, SnapshotConfig(lease_ms=100))


def write(directory: Path, fs, snapshot_id: SnapshotId, count: int = 500, **more) -> CheckpointInfo:
    return write_checkpoint(
        fs,
        directory,
        snapshot_id,
        values=[b"%04d" % n * 100 for n in range(count)],
        last_contained_log_timestamp=9,
        **more,
    )


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def download(store: DirectorySnapshotStore, snapshot_id: SnapshotId, whole: bytes) -> None:
    rng = random.Random(5)
    store.begin_download(snapshot_id)
    position = 0
    while position < len(whole):
        size = rng.choice([1, 61, 1000, 50_000])
        store.write_chunk(snapshot_id, position, whole[position : position + size])
        position += len(whole[position : position + size])


def test_it_is_the_port(store: DirectorySnapshotStore) -> None:
    port: SnapshotStore = store
    assert port.list() == ()
    assert store.latest() is None


def test_list_is_ascending_and_knows_only_frozen_files(
    store: DirectorySnapshotStore, fs: RecordingFileSystem, directory: Path
) -> None:
    for snapshot_id in (C, A, SnapshotId(0, 0), B):
        write(directory, fs, snapshot_id)
    for state in (FileState.PART, FileState.DELETED, FileState.CORRUPT):
        (directory / file_name(SnapshotId(99, 1), state)).touch()
    (directory / "00000000000000000000.log").touch()
    assert store.list() == (SnapshotId(0, 0), A, B, C)
    assert store.latest() == C


def test_epochs_of_twenty_digits_are_served(
    store: DirectorySnapshotStore, fs: RecordingFileSystem, directory: Path
) -> None:
    write(directory, fs, A)
    long_name = f"{A.offset:020d}-{A.epoch:020d}.checkpoint"
    (directory / file_name(A)).rename(directory / long_name)
    assert store.list() == (A,)
    assert store.read_chunk(A, 0, 10) == (directory / long_name).read_bytes()[:10]
    assert store.verify(A).records == 500
    clock_far = 10**9
    store.leased(clock_far)
    store.delete([A])
    assert names(directory) == []


def test_chunks_add_up_to_the_file(
    store: DirectorySnapshotStore, fs: RecordingFileSystem, directory: Path
) -> None:
    info = write(directory, fs, A)
    whole = (directory / file_name(A)).read_bytes()
    assert store.size(A) == len(whole) == info.size_bytes
    fs.steps.clear()
    chunks = [store.read_chunk(A, at, 1000) for at in range(0, len(whole) + 1, 1000)]
    assert b"".join(chunks) == whole
    assert store.read_chunk(A, len(whole), 10) == b""
    assert fs.steps.count(f"open {file_name(A)}") == 1, "the descriptor stays open"
    assert store.size(A) == len(whole)
    assert store.file_digest(A) == info.digest == CheckpointReader(whole).verify().digest
    store.close()
    assert fs.open_files == 0


def test_missing_files_and_bad_arguments(store: DirectorySnapshotStore) -> None:
    for call in (store.size, store.file_digest, store.reader, store.verify):
        with pytest.raises(StorageError, match="no checkpoint 10/1"):
            call(A)
    with pytest.raises(StorageError, match="no checkpoint"):
        store.read_chunk(A, 0, 1)
    with pytest.raises(QuorumUsageError):
        store.read_chunk(A, -1, 1)
    assert store.leased(0) == ()


def test_a_lease_lasts_from_the_last_read(
    store: DirectorySnapshotStore, fs: RecordingFileSystem, directory: Path, clock
) -> None:
    write(directory, fs, A)
    write(directory, fs, B)
    store.read_chunk(A, 0, 1)
    clock.now += 60
    store.read_chunk(B, 0, 1)
    store.read_chunk(A, 1, 1)
    clock.now += 99
    assert store.leased(clock.now) == (A, B)
    store.read_chunk(B, 1, 1)
    clock.now += 1
    assert store.leased(clock.now) == (B,)
    assert fs.open_files == 1
    clock.now += 100
    assert store.leased(clock.now) == ()
    assert fs.open_files == 0
    assert store.read_chunk(A, 0, 1)


def test_digest_is_computed_once(
    store: DirectorySnapshotStore, fs: RecordingFileSystem, directory: Path
) -> None:
    info = write(directory, fs, A)
    fs.steps.clear()
    assert store.file_digest(A) == store.file_digest(A) == info.digest
    assert fs.steps.count(f"open {file_name(A)}") == 1
    store.remember(write(directory, fs, B))
    fs.steps.clear()
    store.file_digest(B)
    assert fs.steps == []


def test_a_complete_read_provides_the_digest(
    store: DirectorySnapshotStore, fs: RecordingFileSystem, directory: Path
) -> None:
    info = write(directory, fs, A)
    assert len(list(store.reader(A).batches())) == 3
    fs.steps.clear()
    assert store.file_digest(A) == info.digest
    assert fs.steps == []


def test_download_freezes_to_the_same_bytes(
    store: DirectorySnapshotStore, fs: RecordingFileSystem, directory: Path
) -> None:
    info = write(directory, fs, A, kraft_version=1, voters=VOTERS)
    path = directory / file_name(A)
    whole = path.read_bytes()
    path.unlink()
    download(store, A, whole)
    assert names(directory) == [file_name(A, FileState.PART)]
    fs.steps.clear()
    assert store.seal_download(A).voters == VOTERS
    part = file_name(A, FileState.PART)
    assert fs.steps == [
        f"sync {part}",
        f"rename {path.name}",
        f"sync-directory {directory.name}",
    ], "no second pass over the file"
    assert path.read_bytes() == whole
    fs.steps.clear()
    assert store.file_digest(A) == info.digest
    assert fs.steps == [], "the digest was computed on the way"
    assert store.list() == (A,)
    with pytest.raises(QuorumUsageError):
        store.seal_download(A)
    assert fs.open_files == 0


@pytest.mark.parametrize("damage", ["flip", "cut", "extra", "other epoch"])
def test_a_corrupt_download_is_quarantined(
    store: DirectorySnapshotStore, fs: RecordingFileSystem, directory: Path, damage: str
) -> None:
    write(directory, fs, A)
    path = directory / file_name(A)
    whole = bytearray(path.read_bytes())
    path.unlink()
    target = A
    if damage == "flip":
        whole[len(whole) // 2] ^= 4
    elif damage == "cut":
        del whole[-1]
    elif damage == "extra":
        whole += b"\x00"
    else:
        target = SnapshotId(10, 2)
    download(store, target, bytes(whole))
    quarantined = directory / file_name(target, FileState.CORRUPT)
    with pytest.raises(SnapshotCorruptError, match="position") as caught:
        store.seal_download(target)
    assert str(quarantined) in str(caught.value)
    assert store.list() == ()
    assert quarantined.read_bytes() == bytes(whole)
    (entry,) = store.quarantined
    assert (entry.snapshot_id, entry.path) == (target, quarantined)
    assert "corrupt checkpoint at position" in entry.reason
    # The next attempt starts clean.
    store.begin_download(target)
    store.abandon_download(target)
    assert names(directory) == [quarantined.name]
    assert fs.open_files == 0


def test_download_rules(
    store: DirectorySnapshotStore, fs: RecordingFileSystem, directory: Path
) -> None:
    with pytest.raises(QuorumUsageError, match="no download"):
        store.write_chunk(A, 0, b"x")
    store.begin_download(A)
    store.write_chunk(A, 0, b"x" * 10)
    for position in (0, 9, 11):
        with pytest.raises(QuorumUsageError, match="has 10 bytes"):
            store.write_chunk(A, position, b"y")
    with pytest.raises(QuorumUsageError, match="no download of 20/1"):
        store.write_chunk(B, 10, b"y")
    store.abandon_download(B)
    assert names(directory) == [file_name(A, FileState.PART)]
    store.begin_download(B)
    assert names(directory) == [file_name(B, FileState.PART)]
    store.begin_download(B)
    store.write_chunk(B, 0, b"again from nothing")
    store.abandon_download(B)
    store.abandon_download(B)
    assert names(directory) == []
    assert fs.open_files == 0


def test_delete_goes_through_a_name_of_its_own(
    store: DirectorySnapshotStore, fs: RecordingFileSystem, directory: Path
) -> None:
    write(directory, fs, A)
    write(directory, fs, B)
    fs.steps.clear()
    store.delete([A, SnapshotId(77, 7)])
    retired = file_name(A, FileState.DELETED)
    assert fs.steps == [
        f"rename {retired}",
        f"unlink {retired}",
        f"sync-directory {directory.name}",
    ]
    assert store.list() == (B,)


def test_a_leased_file_is_deleted_by_a_later_call(
    store: DirectorySnapshotStore, fs: RecordingFileSystem, directory: Path, clock
) -> None:
    for snapshot_id in (A, B, C):
        write(directory, fs, snapshot_id)
    store.read_chunk(A, 0, 1)
    store.delete([A, B])
    assert store.list() == (A, C)
    clock.now += 50
    store.delete([])
    assert store.read_chunk(A, 0, 4) != b""
    clock.now += 100
    store.delete([])
    assert store.list() == (C,)


def test_start_up_removes_what_a_stopped_process_left(
    store: DirectorySnapshotStore, fs: RecordingFileSystem, directory: Path
) -> None:
    write(directory, fs, A)
    left = [
        file_name(A, FileState.PART),
        file_name(B, FileState.PART),
        file_name(B, FileState.PART, label="own"),
        file_name(B, FileState.DELETED),
        file_name(B, FileState.PART, label="123456"),
    ]
    kept = [
        file_name(B, FileState.CORRUPT),
        file_name(C, FileState.PART),
        "quorum-state",
        "x.part",
        file_name(A),
    ]
    for name in left + kept:
        (directory / name).touch()
    assert sorted(store.clean_up()) == sorted(left)
    assert names(directory) == sorted(kept)
    assert store.clean_up() == ()
    (entry,) = store.quarantined
    assert (entry.snapshot_id, entry.reason) == (B, "")


def test_a_frozen_file_found_corrupt_is_quarantined(
    store: DirectorySnapshotStore, fs: RecordingFileSystem, directory: Path, clock
) -> None:
    write(directory, fs, A)
    write(directory, fs, B)
    store.read_chunk(B, 0, 1)
    store.file_digest(B)
    path = directory / file_name(B)
    raw = bytearray(path.read_bytes())
    raw[1000] ^= 1
    path.write_bytes(raw)
    with pytest.raises(SnapshotCorruptError, match="checksum") as caught:
        store.verify(B)
    assert file_name(B, FileState.CORRUPT) in str(caught.value)
    assert store.list() == (A,)
    assert store.leased(clock.now) == ()
    assert [entry.snapshot_id for entry in store.quarantined] == [B]
    with pytest.raises(StorageError):
        store.file_digest(B)
    assert fs.open_files == 0


def test_a_failing_disk_at_the_freeze_shows_no_final_name(
    store: DirectorySnapshotStore, fs: RecordingFileSystem, directory: Path
) -> None:
    write(directory, fs, A)
    path = directory / file_name(A)
    whole = path.read_bytes()
    path.unlink()
    download(store, A, whole)
    fs.fail_at = "sync"
    with pytest.raises(StorageError, match="a seeded failure"):
        store.seal_download(A)
    assert store.list() == ()

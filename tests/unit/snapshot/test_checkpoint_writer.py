"""Writing a checkpoint: atomic under its final name, nothing left behind on failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorum.errors import DiskFullError, QuorumUsageError, StorageError
from quorum.types import SnapshotId
from snapshot.naming import FileState, file_name
from snapshot.reader import CheckpointReader
from snapshot.writer import (
    SYNC_BYTES,
    CheckpointCancelled,
    CheckpointProgress,
    PartFile,
    write_checkpoint,
)
from tests.support.checkpoint_digest import digest_of_headers
from tests.support.recording_filesystem import RecordingFileSystem

ID = SnapshotId(12, 2)
FINAL = file_name(ID)
PART = file_name(ID, FileState.PART, label="own")
VALUES = [b"v" * 1000] * 600


def write(fs: RecordingFileSystem, directory: Path, **changes):
    arguments = {"values": VALUES, "last_contained_log_timestamp": 5, **changes}
    return write_checkpoint(fs, directory, ID, **arguments)


def test_order_of_durable_steps(fs: RecordingFileSystem, directory: Path) -> None:
    info = write(fs, directory)
    assert fs.steps == [
        f"create {PART}",
        *[f"append {PART}"] * 5,
        f"sync {PART}",
        f"rename {FINAL}",
        f"sync-directory {directory.name}",
    ]
    whole = (directory / FINAL).read_bytes()
    assert (info.snapshot_id, info.size_bytes, info.records) == (ID, len(whole), 600)
    assert info.digest == digest_of_headers(whole)
    assert CheckpointReader(directory / FINAL).verify().digest == info.digest
    assert fs.open_files == 0


def test_the_same_content_gives_the_same_file(fs: RecordingFileSystem, directory: Path) -> None:
    first = write(fs, directory)
    before = (directory / FINAL).read_bytes()
    assert write(fs, directory, values=iter(VALUES)) == first
    assert (directory / FINAL).read_bytes() == before


@pytest.mark.parametrize("step", ["append", "sync", "rename", f"create {PART}"])
def test_a_failing_disk_leaves_no_file(fs: RecordingFileSystem, directory: Path, step: str) -> None:
    fs.fail_at = step
    with pytest.raises(StorageError, match="a seeded failure"):
        write(fs, directory)
    assert list(directory.iterdir()) == []
    assert fs.open_files == 0


def test_a_dump_that_raises_leaves_no_file(fs: RecordingFileSystem, directory: Path) -> None:
    def values():
        yield from VALUES
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write(fs, directory, values=values())
    assert list(directory.iterdir()) == []
    with pytest.raises(QuorumUsageError):
        write(fs, directory, values=[b""])
    assert list(directory.iterdir()) == []


def test_cancelling_and_progress(fs: RecordingFileSystem, directory: Path) -> None:
    seen: list[CheckpointProgress] = []
    with pytest.raises(CheckpointCancelled):
        write(fs, directory, progress=seen.append, is_cancelled=lambda: len(seen) == 2)
    assert [progress.records for progress in seen] == [0, 262]
    assert list(directory.iterdir()) == []
    seen.clear()
    info = write(fs, directory, progress=seen.append)
    assert [progress.records for progress in seen] == [0, 262, 524, 600, 600]
    assert seen[-1].size_bytes == info.size_bytes


def test_a_left_over_part_file_is_emptied(fs: RecordingFileSystem, directory: Path) -> None:
    (directory / PART).write_bytes(b"left over" * 100_000)
    write(fs, directory)
    assert CheckpointReader(directory / FINAL).verify().records == 600
    assert [path.name for path in directory.iterdir()] == [FINAL]


def test_a_growing_part_file_is_synced_now_and_then(
    fs: RecordingFileSystem, directory: Path
) -> None:
    part = PartFile(fs, directory, ID)
    for _ in range(5):
        part.append(bytes(SYNC_BYTES // 2))
    assert [step.split()[0] for step in fs.steps] == [
        "create",
        "append",
        "append",
        "sync",
        "append",
        "append",
        "sync",
        "append",
    ]
    part.discard()
    part.discard()
    assert list(directory.iterdir()) == []


@pytest.mark.parametrize("short", [0, 1])
def test_a_reserve_is_not_touched_by_a_single_byte(
    fs: RecordingFileSystem, directory: Path, monkeypatch: pytest.MonkeyPatch, short: int
) -> None:
    """Goal: the limit is exact. Method: free is what the file and the reserve take, or one less."""
    size_bytes = write(fs, directory).size_bytes
    (directory / FINAL).unlink()
    free = size_bytes + 1_000 - short
    monkeypatch.setattr(
        fs, "free_bytes", lambda _: free - sum(f.stat().st_size for f in directory.iterdir())
    )
    if short:
        with pytest.raises(DiskFullError, match="1000 in reserve"):
            write(fs, directory, reserve_bytes=1_000)
        assert list(directory.iterdir()) == []
        assert fs.open_files == 0
    else:
        assert write(fs, directory, reserve_bytes=1_000).size_bytes == size_bytes


def test_without_a_known_free_space_the_reserve_is_not_enforced(
    fs: RecordingFileSystem, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: such a disk has checkpoints. Method: ``free_bytes`` is None."""
    monkeypatch.setattr(fs, "free_bytes", lambda _: None)
    assert write(fs, directory, reserve_bytes=1 << 40).records == 600

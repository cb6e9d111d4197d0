"""When a checkpoint is due, and writing one at a time beside everything else."""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor
from pathlib import Path

import pytest

from quorum.errors import QuorumUsageError, StorageError
from quorum.types import SnapshotId
from snapshot.config import SnapshotConfig
from snapshot.generator import (
    CheckpointGenerator,
    CheckpointRequest,
    CheckpointTrigger,
    SnapshotFigures,
    snapshot_figures,
)
from snapshot.naming import file_name
from snapshot.reader import CheckpointReader
from snapshot.writer import CheckpointCancelled
from tests.support.recording_filesystem import RecordingFileSystem

MIB = 1 << 20
ID = SnapshotId(5, 1)


@pytest.mark.parametrize(
    ("changed", "total", "bytes_since", "expected"),
    [
        (50, 100, 20 * MIB, True),
        (49, 100, 20 * MIB, False),  # bytes alone
        (100, 100, 20 * MIB - 1, False),  # ratio alone
        (0, 0, 20 * MIB, True),  # no snapshot, or an empty one
        (0, 0, 20 * MIB - 1, False),
        (1, 3, 100 * MIB, False),
        (2, 3, 20 * MIB, True),
        (500, 100, 20 * MIB, True),
    ],
)
def test_both_conditions_must_hold(
    changed: int, total: int, bytes_since: int, expected: bool
) -> None:
    trigger = CheckpointTrigger()
    assert expected == trigger.is_due(
        changed_records=changed,
        snapshot_records=total,
        bytes_since=bytes_since,
        ms_since=10**12,
    )


def test_interval_is_off_by_default_and_needs_something_new() -> None:
    trigger = CheckpointTrigger.from_config(SnapshotConfig(interval_ms=1000))
    idle = {"changed_records": 0, "snapshot_records": 10}
    assert trigger.is_due(**idle, bytes_since=1, ms_since=1000)
    assert not trigger.is_due(**idle, bytes_since=1, ms_since=999)
    assert not trigger.is_due(**idle, bytes_since=0, ms_since=5000)
    assert not trigger.is_due(**idle, bytes_since=1)
    assert CheckpointTrigger.from_config(SnapshotConfig()) == CheckpointTrigger()


def test_config_reports_all_problems() -> None:
    assert SnapshotConfig().problems() == []
    assert len(SnapshotConfig(1.5, 0, 0, 0).problems()) == 4


def request(values=(b"a", b"b")) -> CheckpointRequest:
    return CheckpointRequest(ID, values, last_contained_log_timestamp=3, state_digest=b"S" * 16)


@pytest.fixture
def generator(fs: RecordingFileSystem, directory: Path, clock) -> CheckpointGenerator:
    return CheckpointGenerator(fs, directory, clock)


def test_run_writes_and_measures(generator: CheckpointGenerator, directory: Path, clock) -> None:
    assert generator.last is None
    info = generator.run(request(), progress=lambda _: setattr(clock, "now", clock.now + 7))
    assert info.duration_ms == 21
    assert (info.snapshot_id, info.records) == (ID, 2)
    assert info.size_bytes == (directory / file_name(ID)).stat().st_size
    assert generator.last == info
    summary = CheckpointReader(directory / file_name(ID)).verify()
    assert (summary.digest, summary.footer.state_digest) == (info.digest, b"S" * 16)
    assert not generator.is_running


def test_one_at_a_time_in_a_worker(generator: CheckpointGenerator, directory: Path) -> None:
    """Method: block the dump in the worker; the caller continues meanwhile."""
    reached, go_on = threading.Event(), threading.Event()

    def values():
        yield b"first"
        reached.set()
        assert go_on.wait(60)
        yield b"second"

    with ThreadPoolExecutor(1) as executor:
        future = generator.start(request(values()), executor)
        assert reached.wait(60)
        assert generator.is_running
        assert not future.done()
        with pytest.raises(QuorumUsageError, match="already"):
            generator.start(request(), executor)
        with pytest.raises(QuorumUsageError, match="already"):
            generator.run(request())
        go_on.set()
        assert future.result(10).records == 2
    assert not generator.is_running


def test_cancel_and_failure_leave_the_generator_usable(
    generator: CheckpointGenerator, fs: RecordingFileSystem, directory: Path
) -> None:
    with ThreadPoolExecutor(1) as executor:
        future = generator.start(request(), executor, progress=lambda _: generator.cancel())
        with pytest.raises(CheckpointCancelled):
            future.result(10)
        fs.fail_at = "sync"
        with pytest.raises(StorageError):
            generator.start(request(), executor).result(10)
        fs.fail_at = None
        assert generator.last is None
        assert generator.start(request(), executor).result(10).records == 2
    with pytest.raises(QuorumUsageError, match="no worker"):
        generator.start(request(), executor)
    assert generator.run(request()).records == 2


def test_a_job_cancelled_in_the_queue_frees_the_generator(generator: CheckpointGenerator) -> None:
    blocked = threading.Event()
    with ThreadPoolExecutor(1) as executor:
        executor.submit(blocked.wait, 10)
        future = generator.start(request(), executor)
        assert future.cancel()
        blocked.set()
        with pytest.raises(CancelledError):
            future.result(10)
        assert not generator.is_running


def test_figures() -> None:
    assert snapshot_figures((), 0, 40) == SnapshotFigures(0, 0, 0, 40)
    found = snapshot_figures((SnapshotId(5, 1), SnapshotId(30, 2)), 999, 40)
    assert found == SnapshotFigures(2, 30, 999, 10)
    assert snapshot_figures((SnapshotId(50, 1),), 1, 40).lag_records == 0

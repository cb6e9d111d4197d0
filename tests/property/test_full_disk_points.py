"""The disk is full at every write of a log's life, and power is lost soon after.

A full disk passes: it fails one write or all of them from one on. A log that could not store a side
file goes on, and what it left must not contradict it after a crash.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from quorum.batch import encode_batch
from quorum.control import encode_control_batch
from quorum.control_records import LeaderChange
from quorum.errors import DiskFullError
from quorum.log.config import LogConfig
from quorum.log.layout import WATERMARK_NAMES
from quorum.log.recovery import open_log
from quorum.log.segmented_log import SegmentedLog
from quorum.types import OffsetAndEpoch, SnapshotId
from simulation.memory_filesystem import (
    KEEP_ALL,
    LOSE_ALL,
    CrashMode,
    Faults,
    MemoryFileSystem,
    PowerLost,
)
from tests.support.crash_sites import WatchedFileSystem, sites
from tests.support.log_builder import contents

DIRECTORY = Path("/log")
CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=150)
EPOCH_MAX = 10
CHANGES_MAX = 14
"""So long after the first failed write power is lost; a cut and what follows take fewer changes."""

EPOCH_FILE = "quorum/log/epoch_file.py"

Records = frozenset[tuple[int, int, bytes]]


class Bench:
    """A log on a simulated disk, and the checkpoints that exist in theory."""

    def __init__(self) -> None:
        self.fs: MemoryFileSystem = WatchedFileSystem()
        self.snapshots: list[SnapshotId] = []
        self.log: SegmentedLog
        self.open()

    def open(self) -> None:
        self.log, _ = open_log(
            self.fs,
            DIRECTORY,
            CONFIG,
            snapshots=tuple(self.snapshots),
            snapshot_digest=lambda _: b"g" * 16,
            epoch_max=EPOCH_MAX,
        )

    def records(self) -> Records:
        return frozenset(contents(self.log))

    def append(self, epoch: int, *, leads: bool = False) -> None:
        base = self.log.end.offset
        if leads:
            change = LeaderChange(1, (1,), (1,))
            data = encode_control_batch([change], base_offset=base, epoch=epoch, timestamp=1)
        else:
            data = encode_batch([b"v" * 40], base_offset=base, epoch=epoch, timestamp=1)
        self.log.append(data, base_offset=base, end_offset=base + 1)

    def advance(self, start: OffsetAndEpoch) -> None:
        self.snapshots.append(start)
        self.log.advance_start(start)

    def replace(self, snapshot_id: SnapshotId) -> None:
        self.snapshots.append(snapshot_id)
        self.log.replace_with(snapshot_id, digest=b"g" * 16)


Step = Callable[[Bench], None]


def flush(bench: Bench) -> None:
    bench.log.flush()


def epoch_of(epoch: int, count: int, *, leads: bool = True) -> list[Step]:
    """A leader change and records behind it, each flushed."""
    kinds = [leads, *(count - 1) * [False]]
    return [step for kind in kinds for step in (_append(epoch, leads=kind), flush)]


def _append(epoch: int, *, leads: bool) -> Step:
    return lambda bench: bench.append(epoch, leads=leads)


def cut(end_offset: int) -> Step:
    return lambda bench: bench.log.truncate_to(end_offset)


STEPS: tuple[Step, ...] = (
    *epoch_of(1, 3),
    *epoch_of(2, 1),
    lambda bench: bench.log.store_high_watermark(2),
    *epoch_of(3, 4),
    # The last record only, then over several segments, then over several epochs.
    cut(7),
    cut(4),
    *epoch_of(5, 1),
    *epoch_of(6, 1),
    cut(3),
    *epoch_of(7, 2),
    lambda bench: bench.advance(OffsetAndEpoch(3, 1)),
    *epoch_of(8, 3),
    cut(6),
    *epoch_of(9, 1),
    lambda bench: bench.replace(SnapshotId(20, 9)),
    *epoch_of(9, 1, leads=False),
    *epoch_of(10, 1),
)


class Found(NamedTuple):
    """The records that a log has in memory, and those of them that a power failure leaves."""

    written: Records
    durable: Records


def states() -> list[Found]:
    """Return them in front of every step, and behind the last one, on a disk with space."""
    bench = Bench()
    found = [Found(frozenset(), frozenset())]
    for step in STEPS:
        step(bench)
        written = bench.records()
        found.append(Found(written, written if step is flush else written & found[-1].durable))
    return found


def run(bench: Bench, full_at: int, count: int, changes: int) -> int | None:
    """Run the steps on a disk that is full at a write; return the step that power was lost in.

    ``count`` writes fail, and power is lost ``changes`` changes later, or when a step reports the
    full disk: a node stops then. None: the disk was never full.
    """
    has_bitten = False

    def bitten(_kind: str) -> None:
        nonlocal has_bitten
        if not has_bitten:
            has_bitten = True
            bench.fs.faults.stop_after_call = changes

    bench.fs.on_bite = bitten
    bench.fs.faults = Faults(full_at_write=full_at, full_writes=count)
    for place, step in enumerate(STEPS):
        try:
            step(bench)
        except (DiskFullError, PowerLost):
            return place
    return len(STEPS) - 1 if has_bitten else None


def places(count: int, changes: int) -> Iterator[tuple[Bench, int]]:
    """Yield a disk for every write that may find it full, and the step that was interrupted."""
    full_at = 0
    while (place := run(bench := Bench(), full_at, count, changes)) is not None:
        yield bench, place
        full_at += 1


@pytest.mark.parametrize(
    ("count", "mode"),
    [
        pytest.param(1, LOSE_ALL, id="one write, power"),
        pytest.param(1, KEEP_ALL, id="one write, process", marks=pytest.mark.long),
        pytest.param(-1, LOSE_ALL, id="all writes, power", marks=pytest.mark.long),
        pytest.param(-1, KEEP_ALL, id="all writes, process", marks=pytest.mark.long),
    ],
)
def test_what_a_full_disk_left_is_an_intact_log(count: int, mode: CrashMode) -> None:
    """Nothing is set aside, nothing that was durable is lost, and nothing is invented.

    Nor is it if both marks are lost as well, which leaves the epoch file as the only witness.
    """
    expected, reached = states(), set()
    for changes in range(CHANGES_MAX):
        for bench, place in places(count, changes):
            assert isinstance(bench.fs, WatchedFileSystem)
            reached.add(bench.fs.lost_at)
            bench.fs.crash(random.Random(place), mode)
            without_marks = bench.fs.clone()
            for name in WATERMARK_NAMES:
                without_marks.take_away(DIRECTORY / name)
            before, after = expected[place], expected[place + 1]
            for fs in (bench.fs, without_marks):
                bench.fs = fs
                bench.open()
                found = bench.records()
                assert before.durable & after.durable <= found, place
                assert found <= before.written | after.written, place
    # Nothing but a full disk leads to these.
    assert {(site.file, site.line) for site in sites() if site.file == EPOCH_FILE} <= reached

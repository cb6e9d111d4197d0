"""A directory without its log files: records it may have acknowledged are not forgotten."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from quorum.log.layout import (
    LOG_START_NAME,
    WATERMARK_NAMES,
    partition_directory,
    segment_bases,
    segment_path,
)
from quorum.log.log_start_file import LogStart, LogStartFile
from quorum.types import OffsetAndEpoch
from simulation.memory_filesystem import KEEP_ALL
from snapshot.config import SnapshotConfig
from statemachine.commands import ConfigChange, IncrementalAlterConfigs, ResourceType
from tests.support.lone_replica import DATA_DIR, LoneReplica

FOLDER = partition_directory(DATA_DIR)


def written(*, trims: bool = False) -> LoneReplica:
    snapshot = SnapshotConfig(min_changed_records_ratio=0.5, max_bytes_between=2_000)
    bench = LoneReplica(snapshot=snapshot if trims else None).boot().lead()
    for n in range(40):
        change = (ConfigChange("match", value=f"a={n}"),)
        command = IncrementalAlterConfigs(int(ResourceType.CLIENT_METRICS), str(n % 5), change)
        bench.write(command)
    bench.crash(KEEP_ALL)
    return bench


def lose(bench: LoneReplica, is_lost: Callable[[str], bool]) -> None:
    for name in bench.fs.list_directory(FOLDER):
        if is_lost(name):
            bench.fs.unlink(FOLDER / name)
    bench.fs.sync_directory(FOLDER)


def is_segment(name: str) -> bool:
    return Path(name).suffix in (".log", ".index", ".digest")


@pytest.mark.parametrize("trims", [False, True])
@pytest.mark.parametrize(
    "is_lost",
    [is_segment, lambda name: is_segment(name) or name in WATERMARK_NAMES],
    ids=["segments", "segments-and-marks"],
)
def test_without_segments_a_floor_is_stored(trims: bool, is_lost: Callable[[str], bool]) -> None:
    """Goal: ADR 7, misses. Method: unlink the log's files, with and without a checkpoint."""
    bench = written(trims=trims)
    epoch = bench.stores.election.load().epoch
    lose(bench, is_lost)
    bench.boot()
    assert bench.stores.report.losses, "nobody was told"
    assert bench.stores.election.load().vote_floor == OffsetAndEpoch(0, epoch + 1)
    bench.advance(10_000)
    assert not bench.replica.node.is_leader, "it led without what it had acknowledged"
    bench.crash(KEEP_ALL)
    bench.boot()
    assert bench.stores.election.load().vote_floor == OffsetAndEpoch(0, epoch + 1)


def test_a_fresh_directory_has_lost_nothing() -> None:
    bench = LoneReplica().boot()
    assert bench.stores.election.load().vote_floor is None
    assert not bench.stores.report.losses
    bench.lead()


def test_a_replacement_under_way_has_lost_nothing() -> None:
    """Goal: no false floor. Method: a crash after the segments are gone, before there is one."""
    bench = written(trims=True)
    newest = bench.stores.snapshots.list()[-1]
    LogStartFile(bench.fs, FOLDER).save(LogStart(newest, b"", is_replacing=True))
    lose(bench, is_segment)
    assert bench.fs.exists(FOLDER / LOG_START_NAME)
    bench.boot()
    assert bench.stores.election.load().vote_floor is None
    assert not bench.stores.report.losses


@pytest.mark.parametrize("is_zeroed", [False, True])
def test_without_an_intact_mark_a_floor_is_stored(is_zeroed: bool) -> None:
    """Goal: ADR 39. Method: both copies of the mark go, the log stays whole."""
    bench = written()
    epoch = bench.stores.election.load().epoch
    for name in WATERMARK_NAMES:
        if is_zeroed:
            bench.fs.write_bytes(FOLDER / name, bytes(1605))
        else:
            bench.fs.take_away(FOLDER / name)
    bench.boot()
    report = bench.stores.report
    assert [loss.end for _, loss in report.losses] == [OffsetAndEpoch(0, epoch + 1)]
    assert set(WATERMARK_NAMES) <= set(report.repaired)
    assert bench.stores.election.load().vote_floor == OffsetAndEpoch(0, epoch + 1)
    bench.advance(10_000)
    assert not bench.replica.node.is_leader, "it led, and cannot know what it had acknowledged"
    bench.crash(KEEP_ALL)
    bench.boot()
    assert bench.stores.election.load().vote_floor == OffsetAndEpoch(0, epoch + 1)


@pytest.mark.parametrize("name", WATERMARK_NAMES)
def test_one_copy_of_the_mark_is_enough(name: str) -> None:
    bench = written()
    bench.fs.take_away(FOLDER / name)
    bench.boot()
    assert not bench.stores.report.losses
    assert name in bench.stores.report.repaired
    assert bench.stores.election.load().vote_floor is None
    bench.lead()


@pytest.mark.parametrize("name", WATERMARK_NAMES)
def test_one_copy_distinguishes_a_cut_segment_from_a_torn_tail(name: str) -> None:
    """Goal: no acknowledged record goes unnoticed. Method: every cut of the newest 300 bytes."""
    bench = written()
    end = bench.replica.node.log_end
    segment = segment_path(FOLDER, segment_bases(bench.fs.list_directory(FOLDER))[-1])
    whole = bench.fs.clone()
    content = bench.fs.read_bytes(segment)
    for size in range(len(content) - 300, len(content), 7):
        bench.fs = whole.clone()
        bench.fs.take_away(FOLDER / name)
        bench.fs.write_bytes(segment, content[:size])
        bench.boot()
        assert bench.stores.election.load().vote_floor == end
        bench.crash(KEEP_ALL)

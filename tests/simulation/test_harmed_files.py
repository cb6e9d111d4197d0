"""Wrong files are noticed: by a replica that is sound, and by the simulator where one is not."""

from __future__ import annotations

import random

import pytest

from quorate.sim.forgery import forge_batch
from quorate.sim.harmed_files import DATA_DIR, HarmedFiles
from quorate.sim.invariants.violation import Violation
from quorate.sim.memory_filesystem import KEEP_ALL
from quorum.log.election_store import ElectionFile
from quorum.log.high_watermark_file import HighWatermarkFile, Watermarks
from quorum.log.layout import (
    QUORUM_STATE_NAME,
    WATERMARK_NAME,
    partition_directory,
    segment_path,
)
from quorum.types import ElectionState
from statemachine.commands import InitProducerId
from tests.support.lone_replica import LoneReplica

FOLDER = partition_directory(DATA_DIR)
SEED = 4
"""One in which an election state is swapped early."""


def _written() -> tuple[LoneReplica, HarmedFiles]:
    bench = LoneReplica().boot().lead()
    for _ in range(20):
        bench.write(InitProducerId())
    return bench, HarmedFiles(1, lambda: bench.fs)


def test_bits_flip_below_a_running_node_only_where_power_loss_leaves_the_mark() -> None:
    """Goal: rot is never taken for a torn tail. Method: every flip of a log, then power fails."""
    for seed in range(60):
        bench, files = _written()
        end_offset = bench.stores.log.end.offset
        change = files.rot(random.Random(seed), may_lose=True, is_running=True)
        assert change is not None
        if change.kind != "log":
            continue
        assert files.is_latent
        bench.crash()
        bench.boot()
        assert bench.stores.log.end.offset < end_offset
        assert bench.stores.election.load().vote_floor is not None, f"seed {seed}: lost in silence"


def test_a_start_on_another_disks_election_state_is_reported() -> None:
    bench, files = _written()
    bench.crash(KEEP_ALL)
    other = LoneReplica().boot().lead()
    source = other.fs
    ElectionFile(source, FOLDER).save(ElectionState(epoch=7))
    while True:
        change = files.swap(random.Random(0), source, may_lose=False, is_own=False)
        assert change is not None
        if change.kind == QUORUM_STATE_NAME:
            break
    files.opening()
    bench.boot()
    with pytest.raises(Violation, match="damage-detected"):
        files.accepted(bench.stores.identity, bench.stores.election.load())


def test_a_mark_is_left_alone_while_it_contradicts_an_older_election_state() -> None:
    bench, files = _written()
    bench.crash(KEEP_ALL)
    files.keeps_mark = True
    earlier = LoneReplica().fs
    kinds = set()
    for seed in range(60):
        change = files.swap(random.Random(seed), earlier, may_lose=True, is_own=True)
        kinds.add(change.kind if change is not None else "")
    assert QUORUM_STATE_NAME in kinds
    assert WATERMARK_NAME not in kinds


def test_marks_that_a_start_has_written_are_no_longer_the_wrong_ones() -> None:
    """Goal: no start has to keep what an earlier one rightly replaced. Method: marks of another
    node are put in place, and written over as by a start that a full disk ended.
    """
    bench, files = _written()
    other, _ = _written()
    bench.crash(KEEP_ALL)
    files.keeps_mark = True
    other.stores.log.store_high_watermark(1)
    for seed in range(60):
        change = files.swap(random.Random(seed), other.fs, may_lose=True, is_own=False)
        if change is not None and change.kind == WATERMARK_NAME:
            break
    assert change is not None
    assert change.kind == WATERMARK_NAME
    files.opening()
    assert change.path in files._kept
    marks = HighWatermarkFile(bench.fs, FOLDER)
    marks.store_durably(Watermarks(3, 3))
    marks.close()
    files.opening()
    assert change.path not in files._kept


def test_a_checkpoint_counts_as_rotten_until_the_directory_is_opened_again() -> None:
    """Goal: rot is told from a wrong checkpoint. Method: flip bits until a checkpoint is hit."""
    bench, files = _written()
    written = bench.replica.checkpoints.write_now()
    assert written is not None
    path = bench.stores.snapshots.path(written)
    assert not files.is_flipped(path)
    rng = random.Random(SEED)
    while (change := files.rot(rng, may_lose=True, is_running=True)) and change.path != path:
        assert not files.is_flipped(path)
    assert files.is_flipped(path)
    files.opening()
    assert not files.is_flipped(path)


def test_a_log_with_a_torn_tail_is_forged_below_it() -> None:
    bench, _ = _written()
    bench.crash(KEEP_ALL)
    path = segment_path(FOLDER, 0)
    data = bench.fs.read_bytes(path)
    bench.fs.write_bytes(path, data + data[-50:])
    forged = forge_batch(bench.fs, FOLDER, 3)
    assert forged is not None
    assert bench.fs.read_bytes(path).endswith(data[-50:])

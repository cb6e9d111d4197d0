"""Wrong files are noticed: by a replica that is intact, and by the simulator where one is not."""

from __future__ import annotations

import random

import pytest

from quorum.log.election_store import ElectionFile
from quorum.log.high_watermark_file import HighWatermarkFile, Watermarks, load_watermarks
from quorum.log.layout import (
    QUORUM_STATE_NAME,
    WATERMARK_NAME,
    WATERMARK_NAMES,
    partition_directory,
    segment_path,
)
from quorum.types import ElectionState, Uuid
from simulation.damaged_files import DATA_DIR, DamagedFiles
from simulation.file_damage import damage_files
from simulation.forgery import forge_batch
from simulation.invariants.violation import Violation
from simulation.memory_filesystem import KEEP_ALL, MemoryFileSystem
from statemachine.commands import InitProducerId
from tests.support.lone_replica import LoneReplica

FOLDER = partition_directory(DATA_DIR)
STATE = FOLDER / QUORUM_STATE_NAME
SEED = 4
"""Seed in which an election state is swapped early."""


def _written() -> tuple[LoneReplica, DamagedFiles]:
    bench = LoneReplica().boot().lead()
    for _ in range(20):
        bench.write(InitProducerId())
    return bench, DamagedFiles(1, lambda: bench.fs)


def test_bits_flip_below_a_running_node_only_where_power_loss_leaves_the_mark() -> None:
    """Goal: corruption is never taken for a torn tail. Method: every flip of a log, then power
    fails.
    """
    for seed in range(60):
        bench, files = _written()
        end_offset = bench.stores.log.end.offset
        change = files.corruption(random.Random(seed), may_lose=True, is_running=True)
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
    other = LoneReplica().fs
    ElectionFile(other, FOLDER).save(ElectionState(epoch=7))
    files.put(STATE, QUORUM_STATE_NAME, other.read_bytes(STATE))
    files.opening()
    bench.boot()
    with pytest.raises(Violation, match="damage-detected"):
        files.accepted(bench.stores.identity, bench.stores.election.load())


def _swapped_back(bench: LoneReplica, owner: Uuid, behind: int) -> MemoryFileSystem:
    """Another disk with an election state of ``owner``, so many epochs behind the marks."""
    marks = load_watermarks(bench.fs, FOLDER)
    assert marks is not None
    other = LoneReplica().boot().fs
    state = ElectionState(marks.durable_epoch - behind, disqualified="earlier")
    ElectionFile(other, FOLDER, owner).save(state)
    return other


@pytest.mark.parametrize(
    ("is_own", "behind", "may_lie_there"), [(True, 0, False), (True, 1, True), (False, 0, True)]
)
def test_an_election_state_of_this_disk_comes_back_only_where_the_marks_contradict_it(
    is_own: bool, behind: int, may_lie_there: bool
) -> None:
    """Goal: no violation for a forgotten vote that a single disk cannot detect.

    Method: as at seed 54 of profile corruption. A swap has left an earlier election state of this
    disk on the disk of another node; a second swap brings it back.
    """
    bench, files = _written()
    bench.crash(KEEP_ALL)
    other = _swapped_back(bench, _owner(bench, is_own=is_own), behind)
    changes = [files.swap(random.Random(seed), other, may_lose=False) for seed in range(60)]
    kinds = {change.kind for change in changes if change is not None}
    assert (QUORUM_STATE_NAME in kinds) == may_lie_there


@pytest.mark.parametrize("is_own", [True, False])
def test_an_election_state_of_this_disk_is_not_among_several_damaged_files(is_own: bool) -> None:
    """Goal: beside a damaged mark nothing contradicts it. Method: a disk for each seed."""
    bench, _ = _written()
    bench.crash(KEEP_ALL)
    other = _swapped_back(bench, _owner(bench, is_own=is_own), 1)
    found = set()
    for seed in range(400):
        fs = bench.fs.clone()
        files = DamagedFiles(1, lambda fs=fs: fs)  # type: ignore[misc]
        damage_files(files, fs, random.Random(seed), [other])
        found.add(fs.read_bytes(STATE) if fs.exists(STATE) else b"")
    assert (other.read_bytes(STATE) in found) == (not is_own)


def _owner(bench: LoneReplica, *, is_own: bool) -> Uuid:
    return bench.stores.identity.directory_id if is_own else b"\x99" * 16


def test_a_mark_is_left_alone_while_it_contradicts_an_older_election_state() -> None:
    bench, files = _written()
    bench.crash(KEEP_ALL)
    files.keeps_mark = True
    earlier = LoneReplica().fs
    kinds = set()
    for seed in range(60):
        change = files.swap(random.Random(seed), earlier, may_lose=True)
        kinds.add(change.kind if change is not None else "")
    assert QUORUM_STATE_NAME in kinds
    assert WATERMARK_NAME not in kinds


def test_marks_that_a_start_has_written_are_no_longer_the_wrong_ones() -> None:
    """Goal: a start need not keep a file that an earlier start rightly replaced.

    Method: marks of another node are put in place, and overwritten as by a start that a full disk
    ended.
    """
    bench, files = _written()
    other, _ = _written()
    bench.crash(KEEP_ALL)
    files.keeps_mark = True
    other.stores.log.store_high_watermark(1)
    for seed in range(60):
        change = files.swap(random.Random(seed), other.fs, may_lose=True)
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


def test_a_checkpoint_counts_as_corrupt_until_the_directory_is_opened_again() -> None:
    """Goal: corruption is not taken for a wrong checkpoint. Method: flip bits until one is hit."""
    bench, files = _written()
    written = bench.replica.checkpoints.write_now()
    assert written is not None
    path = bench.stores.snapshots.path(written)
    assert not files.is_flipped(path)
    rng = random.Random(SEED)
    while (change := files.corruption(rng, may_lose=True, is_running=True)) and change.path != path:
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


def _flipped(content: bytes) -> bytes:
    return bytes([content[0] ^ 1]) + content[1:]


@pytest.mark.parametrize("is_put_back", [True, False])
def test_a_file_with_the_content_that_its_node_wrote_last_needs_no_report(
    is_put_back: bool,
) -> None:
    """Goal: corruption that another fault has undone is not damage.

    Method: as at seed 301 of profile corruption. A mark becomes corrupt, then its latest version
    replaces it, and the node that starts from it continues to write.
    """
    bench, files = _written()
    bench.crash(KEEP_ALL)
    path = FOLDER / WATERMARK_NAMES[1]
    intact = bench.fs.read_bytes(path)
    files.put(path, path.name, _flipped(intact))
    if is_put_back:
        files.put(path, path.name, intact)
    files.opening()
    bench.boot().lead()
    bench.write(InitProducerId())
    bench.stores.log.store_high_watermark(bench.stores.log.end.offset)
    assert bench.fs.read_bytes(path) != intact
    if is_put_back:
        files.opened([], is_log_whole=True)
        return
    with pytest.raises(Violation, match="damage-reported"):
        files.opened([], is_log_whole=True)


@pytest.mark.parametrize("other", ["newer", "newer but for a bit", "as old", "as old, corrupt"])
def test_an_older_mark_passes_only_where_the_other_one_is_not_newer(other: str) -> None:
    """Goal: damage that nothing shows need not be reported.

    Method: the other mark loses its last writes, as in a crash; or becomes corrupt, and a start is
    refused. Then an earlier version of the first mark is put back.
    """
    bench, files = _written()
    mark, copy = (FOLDER / name for name in WATERMARK_NAMES)
    earlier, earlier_copy = bench.fs.read_bytes(mark), bench.fs.read_bytes(copy)
    bench.write(InitProducerId())
    bench.stores.log.store_high_watermark(bench.stores.log.end.offset)
    bench.crash(KEEP_ALL)
    assert bench.fs.read_bytes(mark) != earlier
    if other == "newer but for a bit":
        files.put(copy, copy.name, _flipped(bench.fs.read_bytes(copy)))
    elif other != "newer":
        bench.fs.write_bytes(copy, earlier_copy)
    if other == "as old, corrupt":
        files.put(copy, copy.name, _flipped(earlier_copy))
    files.opening()
    files.put(mark, mark.name, earlier)
    files.opening()
    bench.boot().lead()
    bench.write(InitProducerId())
    bench.stores.log.store_high_watermark(bench.stores.log.end.offset)
    if other.startswith("as old"):
        files.opened([copy.name], is_log_whole=True)
        return
    with pytest.raises(Violation, match="damage-reported"):
        files.opened([copy.name], is_log_whole=True)

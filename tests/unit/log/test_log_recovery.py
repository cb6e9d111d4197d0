"""Opening the log: torn tails are cut, interrupted plans finished, damage is named."""

from __future__ import annotations

import pytest

from quorum.errors import IdentityError, LogDamagedError, StorageError
from quorum.log.epoch_file import encode_epochs
from quorum.log.identity import check_partition_metadata
from quorum.log.layout import WATERMARK_NAMES
from quorum.log.log_start_file import LogStart, LogStartFile
from quorum.log.recovery import RecoveryReport, open_log
from quorum.types import EpochStart, OffsetAndEpoch
from simulation.memory_filesystem import KEEP_ALL, TORN_TAIL, Faults, MemoryFileSystem
from tests.support.log_builder import HOME, LogBench, chain_values, contents

FIRST = HOME / f"{0:020d}.log"


@pytest.fixture
def bench():
    return LogBench()


def rolled(count=20):
    """A log of several segments."""
    bench = LogBench(segment_bytes=600, index_interval_bytes=150, scan_bytes=200)
    for _ in range(count):
        bench.fill(1, 1)
    return bench


def unmark(bench):
    """Lose the stored durable end, as a crash may: it was never synced."""
    for name in WATERMARK_NAMES:
        bench.fs.write_bytes(HOME / name, bytes(len(bench.fs.read_bytes(HOME / name))))


# ---------------------------------------------------------------------- nothing wrong


def test_a_fresh_directory_is_made_complete():
    fs = MemoryFileSystem()
    log, report = open_log(fs, HOME)
    assert report == RecoveryReport(scanned_segments=1)
    assert check_partition_metadata(fs, HOME)
    log.close()
    _, again = open_log(fs, HOME)
    assert again.end == OffsetAndEpoch(0, 0)


def test_recovery_gives_back_what_was_flushed(bench):
    bench.append(1, "a", "b")
    bench.append(5, "c")
    bench.append(5, "lost", flush=False)
    before = contents(bench.log)[:3]
    digest = bench.log.digest_at(3)
    bench.reopen()
    assert contents(bench.log) == before
    assert bench.log.digest_at(3) == digest
    assert bench.log.epochs == (EpochStart(1, 0), EpochStart(5, 2))
    assert bench.report.end == OffsetAndEpoch(3, 5)


def test_what_a_killed_process_left_in_memory_is_made_durable(bench):
    """It is acknowledged from here on, so a power loss later may not take it back."""
    bench.append(1, "a", flush=False)
    bench.reopen(KEEP_ALL)
    assert contents(bench.log) == [(0, 1, b"a")]
    assert contents(bench.reopen()) == [(0, 1, b"a")]


def test_progress_is_reported_in_bytes():
    bench = rolled()
    seen = []
    open_log(bench.fs, HOME, bench.config, progress=lambda done, total: seen.append((done, total)))
    total = sum(len(bench.fs.read_bytes(HOME / n)) for n in bench.names() if n.endswith(".log"))
    assert seen[-1] == (total, total)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_a_batch_larger_than_the_scan_window_is_read_whole():
    bench = LogBench(scan_bytes=100)
    bench.append(1, "x" * 5000)
    bench.append(1, "y" * 50, "z" * 150)
    assert len(contents(bench.reopen())) == 3


# ---------------------------------------------------------------------- torn tails


@pytest.mark.parametrize("cut", [1, 30, 61, 62, 90, 115])
def test_a_torn_last_batch_is_cut_off(bench, cut):
    bench.append(1, "a")
    size = len(bench.fs.read_bytes(FIRST))
    bench.append(1, "v" * 50, flush=False)
    torn = bench.fs.read_bytes(FIRST)[: size + cut]
    bench.crash()
    bench.fs.write_bytes(FIRST, torn)
    bench.open()
    assert contents(bench.log) == [(0, 1, b"a")]
    assert bench.report.torn_bytes == cut
    assert bench.report.torn_cause
    assert len(bench.fs.read_bytes(FIRST)) == size
    bench.append(2, "b")
    assert contents(bench.reopen()) == [(0, 1, b"a"), (1, 2, b"b")]


def test_zeros_behind_the_end_are_a_torn_tail(bench):
    bench.append(1, "a")
    bench.fs.write_bytes(FIRST, bench.fs.read_bytes(FIRST) + bytes(5000))
    bench.open()
    assert contents(bench.log) == [(0, 1, b"a")]
    assert bench.report.torn_bytes == 5000


def test_every_torn_prefix_of_a_group_is_recovered():
    for seed in range(40):
        bench = LogBench()
        bench.append(1, "durable")
        bench.fill(1, 10, flush=False)
        bench.reopen(TORN_TAIL, seed)
        values = contents(bench.log)
        assert values[0] == (0, 1, b"durable")
        assert [record[0] for record in values] == list(range(len(values)))


# ---------------------------------------------------------------------- plans and snapshots


def test_an_interrupted_replacement_is_finished(bench):
    bench.fill(1, 5)
    plan = LogStart(OffsetAndEpoch(9, 2), b"d" * 16, is_replacing=True)
    LogStartFile(bench.fs, HOME).save(plan)
    bench.snapshots = [OffsetAndEpoch(9, 2)]
    bench.reopen()
    assert bench.report.finished_replacement == OffsetAndEpoch(9, 2)
    assert bench.log.start == bench.log.end == OffsetAndEpoch(9, 2)
    assert bench.log.digest_at(9) == b"d" * 16
    bench.reopen()
    assert bench.report.finished_replacement is None


@pytest.mark.parametrize(
    "snapshot", [OffsetAndEpoch(9, 1), OffsetAndEpoch(3, 2)], ids=["offset-larger", "epoch-larger"]
)
def test_a_snapshot_newer_than_the_log_takes_its_place(bench, snapshot):
    bench.fill(1, 5)
    bench.fs.write_back()
    bench.crash()
    log, report = open_log(
        bench.fs,
        HOME,
        snapshots=(OffsetAndEpoch(2, 1), snapshot),
        snapshot_digest=lambda asked: bytes([asked.offset]) * 16,
    )
    assert report.finished_replacement == snapshot
    assert log.start == log.end == snapshot
    assert log.digest_at(snapshot.offset) == bytes([snapshot.offset]) * 16
    bench.crash()
    log, report = open_log(bench.fs, HOME, snapshots=(snapshot,))
    assert (report.finished_replacement, log.end) == (None, snapshot)


@pytest.mark.parametrize(
    "snapshot", [OffsetAndEpoch(0, 0), OffsetAndEpoch(3, 1), OffsetAndEpoch(5, 1)]
)
def test_an_older_snapshot_leaves_the_log_alone(bench, snapshot):
    bench.fill(1, 5)
    bench.snapshots = [snapshot]
    bench.reopen()
    assert bench.log.start == OffsetAndEpoch(0, 0)
    assert bench.log.end == OffsetAndEpoch(5, 1)
    assert bench.report.high_watermark == snapshot.offset


def test_a_snapshot_that_covers_a_lost_tail_replaces_the_log(bench):
    """Acknowledged data is missing, but not from the checkpoint."""
    bench.fill(1, 5)
    bench.fs.write_bytes(FIRST, b"")
    with pytest.raises(LogDamagedError, match="up to offset 5"):
        bench.open()
    bench.snapshots = [OffsetAndEpoch(5, 1)]
    bench.open()
    assert bench.log.end == OffsetAndEpoch(5, 1)


def test_a_log_start_without_its_checkpoint_is_refused_before_anything_is_deleted():
    bench = rolled()
    bases = bench.log.segment_bases
    LogStartFile(bench.fs, HOME).save(LogStart(OffsetAndEpoch(bases[2], 1)))
    names = bench.names()
    bench.snapshots = [OffsetAndEpoch(bases[2] - 1, 1)]
    with pytest.raises(LogDamagedError, match="no checkpoint ends at or above"):
        bench.open()
    assert bench.names() == names
    bench.snapshots = [OffsetAndEpoch(bases[2], 1)]
    assert bench.open().start.offset == bases[2]
    assert not {f"{base:020d}.log" for base in bases[:2]} & set(bench.names())


def test_a_log_start_that_is_no_place_in_the_log_is_damage(bench):
    bench.append(1, "a", "b")
    bench.append(1, "c")
    for wrong in (OffsetAndEpoch(1, 1), OffsetAndEpoch(2, 7), OffsetAndEpoch(8, 1)):
        LogStartFile(bench.fs, HOME).save(LogStart(wrong))
        bench.snapshots = [OffsetAndEpoch(wrong.offset, 0)]
        with pytest.raises(LogDamagedError, match="the log starts at"):
            bench.open()


def test_a_segment_behind_the_log_start_is_damage(bench):
    bench.log.replace_with(OffsetAndEpoch(9, 2))
    bench.fs.unlink(HOME / "log-start")
    with pytest.raises(LogDamagedError, match="first segment at 9"):
        bench.open()


# ---------------------------------------------------------------------- side files


def test_leftovers_are_removed_and_strangers_left_alone(bench):
    gone = ["quorum-state.tmp", f"{7:020d}.log.deleted", f"{7:020d}.index", f"{7:020d}.digest"]
    kept = ["notes.txt", f"{5:020d}.log.damaged", f"{9:020d}-{1:010d}.checkpoint"]
    for name in gone + kept:
        bench.fs.write_bytes(HOME / name, b"x")
    bench.open()
    assert set(kept) <= set(bench.names())
    assert not set(gone) & set(bench.names())


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b"\xff\xfe",
        b"1\n0\n",
        encode_epochs([EpochStart(1, 0)]),
        encode_epochs([EpochStart(1, 0), EpochStart(4, 1)]),
        b"0\n2\n3 1\n1 0\n",
    ],
    ids=["missing", "empty", "binary", "version", "too-short", "wrong", "descending"],
)
def test_the_epoch_file_is_rebuilt_from_the_log(bench, content):
    bench.append(1, "a", "b")
    bench.append(4, "c")
    path = HOME / "leader-epoch-checkpoint"
    if content is None:
        bench.fs.unlink(path)
    else:
        bench.fs.write_bytes(path, content)
    bench.open()
    assert bench.log.epochs == (EpochStart(1, 0), EpochStart(4, 2))
    assert bench.fs.read_bytes(path) == b"0\n2\n1 0\n4 2\n"
    assert bench.report.rebuilt == ["leader-epoch-checkpoint"]


def test_index_and_digest_files_are_rebuilt():
    bench = rolled()
    bench.log.close()
    sealed = f"{bench.log.segment_bases[1]:020d}"
    index = bench.fs.read_bytes(HOME / f"{sealed}.index")
    digest = bench.fs.read_bytes(HOME / f"{sealed}.digest")
    bench.fs.write_bytes(HOME / f"{sealed}.index", b"\x00" * 16)
    bench.fs.unlink(HOME / f"{sealed}.digest")
    bench.open()
    assert sorted(bench.report.rebuilt) == [f"{sealed}.digest", f"{sealed}.index"]
    assert bench.fs.read_bytes(HOME / f"{sealed}.index") == index
    assert bench.fs.read_bytes(HOME / f"{sealed}.digest") == digest
    bench.open()
    assert bench.report.rebuilt == []


def test_a_digest_that_cannot_be_read_today_is_not_written_over():
    """Goal: a passing read error costs no evidence. Method: a log that starts within a segment."""
    bench = rolled()
    base = bench.log.segment_bases[1]
    bench.snapshots.append(OffsetAndEpoch(base + 1, 1))
    bench.log.advance_start(bench.snapshots[0])
    end = bench.log.end.offset
    known, path = bench.log.digest_at(end), HOME / f"{base:020d}.digest"
    stored = bench.fs.read_bytes(path)
    bench.log.close()
    bench.fs.faults = Faults(unreadable=lambda name: name.endswith(".digest"))
    with pytest.raises(StorageError):
        bench.open()
    bench.fs.faults = Faults()
    assert bench.fs.read_bytes(path) == stored
    bench.open()
    assert bench.log.digest_at(end) == known != b""


@pytest.mark.parametrize("loss", ["missing", "corrupt"])
@pytest.mark.parametrize("source", ["log start", "checkpoint"])
def test_a_lost_digest_is_known_again_from_another_file(source, loss):
    """The log start and checkpoints hold digests too: none behind the first of them is lost."""
    bench = rolled()
    expected = chain_values(bench.log)
    base = bench.log.segment_bases[1]
    known = base + 2
    if source == "log start":
        bench.log.advance_start(OffsetAndEpoch(known, 1))
    else:
        bench.log.advance_start(OffsetAndEpoch(base, 1))
        start = LogStartFile(bench.fs, HOME)
        start.save(LogStart(OffsetAndEpoch(base, 1)))
    bench.log.close()
    path = HOME / f"{base:020d}.digest"
    if loss == "corrupt":
        bench.fs.flip_bit(path, 30)
    else:
        bench.fs.unlink(path)
    bench.snapshots = [OffsetAndEpoch(known, 1)]
    digests = {OffsetAndEpoch(known, 1): expected[known] if source == "checkpoint" else b""}
    for _ in range(2):
        bench.open(digests.__getitem__)
        end = bench.log.end.offset
        for offset in range(base, end + 1):
            assert bench.log.digest_at(offset) == (expected[offset] if offset >= known else b"")
        bench.log.close()
    bench.open(digests.__getitem__)
    bench.log.truncate_to(known + 1)
    assert bench.log.digest_at(known + 1) == expected[known + 1]


def test_a_high_watermark_beyond_the_log_is_not_believed(bench):
    bench.append(1, "a")
    bench.append(1, "b", flush=False)
    bench.log.store_high_watermark(2)
    stored = {name: bench.fs.read_bytes(HOME / name) for name in WATERMARK_NAMES}
    bench.crash()
    for name, content in stored.items():
        bench.fs.write_bytes(HOME / name, content)
    bench.open()
    assert bench.report.high_watermark == 1
    assert bench.log.high_watermark == 1


def test_another_topics_directory_is_refused(bench):
    bench.fs.write_bytes(
        HOME / "partition.metadata", b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAABQ"
    )
    with pytest.raises(IdentityError, match="belongs to topic"):
        bench.open()

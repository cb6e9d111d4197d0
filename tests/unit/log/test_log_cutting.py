"""Truncation, log start, replacement and failures of the log on disk."""

from __future__ import annotations

import threading

import pytest

from quorum.batch import record_values, scan_batches
from quorum.digest import fold
from quorum.errors import (
    DiskFullError,
    InvariantViolation,
    QuorumUsageError,
    StorageError,
)
from quorum.log.config import LogConfig
from quorum.types import EpochStart, OffsetAndEpoch
from simulation.memory_filesystem import CrashMode, Faults
from tests.support.log_builder import LogBench, chain_values, contents, make_batch


@pytest.fixture
def bench():
    return LogBench()


@pytest.fixture
def small():
    """Segments of a few batches, an index entry for nearly every batch."""
    return LogBench(segment_bytes=600, index_interval_bytes=150, scan_bytes=200)


# ---------------------------------------------------------------------- truncation


def test_truncation_to_every_boundary_rewinds_everything():
    def build():
        bench = LogBench(segment_bytes=600, index_interval_bytes=150)
        for epoch, count in ((1, 1), (1, 2), (2, 3), (2, 1), (4, 2), (4, 2), (7, 1), (7, 3)):
            bench.append(epoch, *("v" * 30 for _ in range(count)))
        return bench

    model = build()
    records, expected = contents(model.log), chain_values(model.log)
    for end in expected:
        bench = build()
        bench.log.truncate_to(end)
        assert contents(bench.log) == records[:end]
        epoch = records[end - 1][1] if end else 0
        assert bench.log.end == OffsetAndEpoch(end, epoch)
        assert bench.log.epochs == tuple(e for e in model.log.epochs if e.start_offset < end)
        assert bench.log.digest_at(end) == expected[end]
        bench.append(9, "new")
        assert contents(bench.reopen()) == [*records[:end], (end, 9, b"new")]


def test_truncation_refuses_the_middle_of_a_batch_and_places_outside(bench):
    bench.append(1, "a", "b", "c")
    bench.append(1, "d")
    with pytest.raises(QuorumUsageError, match="not a batch boundary"):
        bench.log.truncate_to(2)
    with pytest.raises(QuorumUsageError, match="of a log from 0 to 4"):
        bench.log.truncate_to(5)
    bench.log.truncate_to(4)
    assert bench.log.end.offset == 4


def test_truncation_below_the_high_watermark_stops_the_process(bench):
    bench.append(1, "a")
    bench.append(1, "b")
    bench.log.store_high_watermark(2)
    with pytest.raises(InvariantViolation, match="high_watermark=2"):
        bench.log.truncate_to(1)


def test_what_is_appended_behind_a_cut_is_found_at_every_offset():
    """Batches of another size than those cut, so that stale positions would be wrong."""
    bench = LogBench(index_interval_bytes=150)
    bench.fill(1, 40, size=50)
    bench.log.truncate_to(3)
    for number in range(30):
        bench.append(2, "w" * (1 + number))
    for offset in range(33):
        data = bench.log.read(offset, 1)
        assert scan_batches(data)[0].base_offset == offset
    assert chain_values(bench.log)[20] == bench.log.digest_at(20)


def test_a_truncated_segment_leaves_no_stale_index_file(small):
    for _ in range(20):
        small.fill(1, 1)
    base = small.log.segment_bases[1]
    assert f"{base:020d}.index" in small.names()
    small.log.truncate_to(base + 2)
    assert f"{base:020d}.index" not in small.names()
    assert small.log.segment_bases[-1] == base


# ---------------------------------------------------------------------- log start


def test_advancing_the_start_deletes_what_lies_wholly_below(small):
    for _ in range(20):
        small.fill(1, 1)
    bases = small.log.segment_bases
    start = OffsetAndEpoch(bases[2] + 1, 1)
    small.log.advance_start(start)
    assert small.log.start == start
    assert small.log.segment_bases == bases[2:]
    assert small.log.epochs == (EpochStart(1, start.offset),)
    left = [name for name in small.names() if name[:20].isdigit()]
    assert {int(name[:20]) for name in left} == set(bases[2:])
    small.snapshots = [start]
    assert small.reopen().start == start
    assert contents(small.log)[0][0] == start.offset


def test_the_start_never_falls(bench):
    bench.append(1, "a")
    bench.append(1, "b")
    bench.log.advance_start(OffsetAndEpoch(2, 1))
    bench.log.advance_start(OffsetAndEpoch(1, 1))
    assert bench.log.start == OffsetAndEpoch(2, 1)


def test_the_start_must_be_a_place_in_the_log(bench):
    bench.append(1, "a", "b")
    bench.append(2, "c")
    for wrong, reason in (
        (OffsetAndEpoch(4, 2), "above the log end"),
        (OffsetAndEpoch(1, 1), "not a batch boundary"),
        (OffsetAndEpoch(2, 2), "record of epoch 1"),
    ):
        with pytest.raises(QuorumUsageError, match=reason):
            bench.log.advance_start(wrong)
    assert bench.log.start == OffsetAndEpoch(0, 0)


def test_what_lies_below_a_stored_start_was_flushed_first(bench):
    bench.append(1, "a", flush=False)
    bench.log.advance_start(OffsetAndEpoch(1, 1))
    bench.snapshots = [OffsetAndEpoch(1, 1)]
    assert bench.reopen().end == OffsetAndEpoch(1, 1)
    assert bench.report.finished_replacement is None


# ---------------------------------------------------------------------- replacement


def test_a_replaced_log_is_empty_at_the_snapshot(small):
    for _ in range(10):
        small.fill(1, 1)
    snapshot = OffsetAndEpoch(50, 4)
    small.log.replace_with(snapshot, digest=b"d" * 16)
    assert small.log.start == small.log.end == snapshot
    assert small.log.epochs == ()
    assert small.log.high_watermark == 50
    assert small.log.segment_bases == (50,)
    assert small.log.digest_at(50) == b"d" * 16
    small.append(4, "next")
    assert contents(small.log) == [(50, 4, b"next")]
    assert small.log.epochs == (EpochStart(4, 50),)
    digest = small.log.digest_at(51)
    assert digest == fold(b"d" * 16, small.log.read(50, 1))
    small.snapshots = [snapshot]
    small.reopen()
    assert contents(small.log) == [(50, 4, b"next")]
    assert small.log.epochs == (EpochStart(4, 50),)
    assert small.log.digest_at(51) == digest


def test_without_the_snapshots_digest_positions_cannot_be_compared(bench):
    bench.log.replace_with(OffsetAndEpoch(50, 4))
    bench.append(4, "a")
    bench.append(4, "b")
    assert [bench.log.digest_at(offset) for offset in (50, 51, 52)] == [b"", b"", b""]
    bench.snapshots = [OffsetAndEpoch(50, 4)]
    assert bench.reopen().digest_at(51) == b""


def test_a_snapshot_of_a_newer_epoch_may_lie_below_the_log_end(bench):
    bench.fill(1, 10)
    bench.log.replace_with(OffsetAndEpoch(5, 3))
    bench.append(3, "x")
    bench.snapshots = [OffsetAndEpoch(5, 3)]
    assert contents(bench.reopen()) == [(5, 3, b"x")]


def test_an_old_durable_end_does_not_come_back_behind_a_replacement(bench):
    """The bound stored before was on the disk; the one stored after is lost."""
    bench.fill(1, 10)
    bench.fs.write_back()
    bench.log.replace_with(OffsetAndEpoch(5, 3))
    bench.snapshots = [OffsetAndEpoch(5, 3)]
    assert bench.reopen().end == OffsetAndEpoch(5, 3)


# ---------------------------------------------------------------------- failures


def test_a_full_disk_leaves_the_log_as_it_was_and_may_pass(bench):
    bench.append(1, "a")
    bench.fs.faults = Faults(full_at_write=0)
    with pytest.raises(DiskFullError):
        bench.append(1, "b")
    assert contents(bench.log) == [(0, 1, b"a")]
    bench.fs.faults = Faults()
    bench.append(2, "b")
    assert contents(bench.reopen()) == [(0, 1, b"a"), (1, 2, b"b")]


def test_a_disk_full_at_every_write_never_loses_or_invents(small):
    """Including those of a roll, an epoch change and a new log start."""
    full = 0
    for full_at in range(40):
        bench = LogBench(segment_bytes=600, index_interval_bytes=150)
        written = []
        bench.fs.faults = Faults(full_at_write=full_at)
        for number in range(12):
            if number == 8:
                bench.fs.faults = Faults()
            # The small ones still fit where the large ones made a new segment.
            value = f"value {number}".ljust(10 if number >= 8 and number % 2 == 0 else 80)
            try:
                bench.append(1 + number // 4, value)
            except DiskFullError:
                full += 1
                continue
            written.append(value.encode())
        assert [value for _, _, value in contents(bench.log)] == written
        bench.reopen(CrashMode(keep_names=1.0), seed=full_at)
        assert [value for _, _, value in contents(bench.log)] == written
    assert full > 40


def test_after_a_failed_sync_the_log_refuses_all_work(bench):
    bench.append(1, "a")
    bench.fs.faults = Faults(error_at_sync=0)
    with pytest.raises(StorageError, match="cannot sync"):
        bench.append(1, "b")
    for work in (
        bench.log.flush,
        lambda: bench.append(1, "c"),
        lambda: bench.log.truncate_to(0),
        lambda: bench.log.store_high_watermark(1),
        lambda: bench.log.replace_with(OffsetAndEpoch(9, 9)),
    ):
        with pytest.raises(StorageError, match="not usable"):
            work()
    bench.log.close()
    assert contents(bench.reopen()) == [(0, 1, b"a")]


def test_a_closed_log_refuses_work_and_kept_everything(bench):
    bench.append(1, "a", flush=False)
    bench.log.close()
    with pytest.raises(StorageError, match="closed"):
        bench.append(1, "b")
    assert contents(bench.reopen()) == [(0, 1, b"a")]
    assert bench.report.torn_bytes == 0


def test_the_high_watermark_is_a_lower_bound_that_never_falls(bench):
    bench.fill(1, 5)
    bench.log.store_high_watermark(3)
    bench.log.store_high_watermark(2)
    assert bench.log.high_watermark == 3
    bench.log.close()
    bench.open()
    assert bench.report.high_watermark == 3


# ---------------------------------------------------------------------- readers


def test_readers_see_whole_batches_while_the_writer_works(tmp_path):
    """Threads read below the written end while it is appended, cut and trimmed."""
    from quorum.log.filesystem import OsFileSystem
    from quorum.log.recovery import open_log

    log, _ = open_log(OsFileSystem(), tmp_path / "log", LogConfig(segment_bytes=4096))
    failures: list[BaseException] = []
    stop = threading.Event()

    def read_all():
        reads = 0
        while not stop.is_set() or reads < 20:
            reads += 1
            try:
                offset = log.start.offset
                while data := log.read(offset, 700):
                    for header in scan_batches(data):
                        value = record_values(data, header)[0]
                        assert value.startswith(b"%d:" % header.base_offset)
                        offset = header.end_offset
                    log.digest_at(offset)
            except QuorumUsageError:
                continue  # The start moved past this reader.
            except BaseException as error:
                failures.append(error)
                return

    threads = [threading.Thread(target=read_all) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for turn in range(60):
            base = log.end.offset
            data = b"".join(
                make_batch(offset, turn + 1, [b"%d:%d" % (offset, turn)])
                for offset in range(base, base + 20)
            )
            log.append(data, base_offset=base, end_offset=base + 20)
            log.flush()
            if turn % 3 == 2:
                log.truncate_to(base + 7)
            if turn % 10 == 9:
                log.advance_start(OffsetAndEpoch(base + 5, turn + 1))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        log.close()
    assert failures == []

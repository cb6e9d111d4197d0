"""The log on disk as a ``LogStore``: appending, reading, cutting, replacing."""

from __future__ import annotations

import threading

import pytest

from quorum.batch import record_values, scan_batches
from quorum.digest import EMPTY_LOG_DIGEST, fold
from quorum.errors import (
    ConfigError,
    CorruptBatchError,
    DiskFullError,
    InvariantViolation,
    QuorumUsageError,
    StorageError,
)
from quorum.log.config import LogConfig
from quorum.types import EpochStart, OffsetAndEpoch
from tests.support.log_builder import HOME, LogBench, contents, make_batch
from tests.support.memory_filesystem import CrashMode, Faults


@pytest.fixture
def bench():
    return LogBench()


@pytest.fixture
def small():
    """Segments of a few batches, an index entry for nearly every batch."""
    return LogBench(segment_bytes=600, index_interval_bytes=150, scan_bytes=200)


def chain_values(log):
    """The log digest at every batch boundary, computed from the bytes."""
    values = {0: EMPTY_LOG_DIGEST}
    digest, offset = EMPTY_LOG_DIGEST, 0
    while data := log.read(offset, 1):
        (header,) = scan_batches(data)
        digest = fold(digest, data)
        offset = header.end_offset
        values[offset] = digest
    return values


# ---------------------------------------------------------------------- appending


def test_a_new_log_is_empty(bench):
    assert bench.log.start == bench.log.end == OffsetAndEpoch(0, 0)
    assert bench.log.epochs == ()
    assert bench.log.read(0, 100) == b""
    assert bench.log.digest_at(0) == EMPTY_LOG_DIGEST


def test_appended_records_are_read_back(bench):
    bench.append(1, "a", "b")
    bench.append(3, "c")
    assert contents(bench.log) == [(0, 1, b"a"), (1, 1, b"b"), (2, 3, b"c")]
    assert bench.log.end == OffsetAndEpoch(3, 3)
    assert bench.log.epochs == (EpochStart(1, 0), EpochStart(3, 2))


def test_a_group_of_batches_is_one_write(bench):
    before = bench.fs.change_count
    bench.fill(1, 50, flush=False)
    assert bench.fs.change_count == before + 1


@pytest.mark.parametrize(
    ("base_offset", "end_offset", "reason"),
    [(0, 1, "log ends at 2"), (3, 4, "log ends at 2"), (2, 4, "batches end at 3")],
    ids=["repeat", "gap", "wrong-end"],
)
def test_an_append_anywhere_else_than_at_the_end_is_refused(bench, base_offset, end_offset, reason):
    bench.append(1, "a", "b")
    data = make_batch(base_offset, 1, [b"x"])
    with pytest.raises(QuorumUsageError, match=reason):
        bench.log.append(data, base_offset=base_offset, end_offset=end_offset)
    assert contents(bench.log) == [(0, 1, b"a"), (1, 1, b"b")]
    bench.append(1, "c")


def test_an_empty_append_is_refused(bench):
    with pytest.raises(QuorumUsageError, match="0 bytes"):
        bench.log.append(b"", base_offset=0, end_offset=0)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data[:-1],
        lambda data: data + b"junk",
        lambda data: data[:70] + bytes([data[70] ^ 1]) + data[71:],
        lambda _: bytes(100),
        lambda _: b"not a batch at all, but long enough to hold a batch header, really",
    ],
    ids=["cut", "junk-behind", "bit-flip", "zeros", "text"],
)
def test_invalid_batches_leave_the_log_unchanged(bench, spoil):
    bench.append(2, "a")
    with pytest.raises(CorruptBatchError):
        bench.log.append(spoil(make_batch(1, 2, [b"x" * 20])), base_offset=1, end_offset=2)
    assert bench.log.end == OffsetAndEpoch(1, 2)
    bench.append(2, "b")
    assert contents(bench.reopen()) == [(0, 2, b"a"), (1, 2, b"b")]


def test_a_batch_of_an_older_epoch_is_refused(bench):
    bench.append(3, "a")
    with pytest.raises(CorruptBatchError, match="epoch 2 after epoch 3"):
        bench.log.append(make_batch(1, 2, [b"x"]), base_offset=1, end_offset=2)


def test_announced_epochs_must_be_those_in_the_batches(bench):
    bench.append(1, "a")
    data = make_batch(1, 1, [b"b"]) + make_batch(2, 4, [b"c"])
    with pytest.raises(QuorumUsageError, match="announces"):
        bench.log.append(data, base_offset=1, end_offset=3, epochs=[EpochStart(4, 1)])
    # The first entry may name the epoch that goes on (core/messages: ReceivedRecords).
    said = [EpochStart(1, 1), EpochStart(4, 2)]
    bench.log.append(data, base_offset=1, end_offset=3, epochs=said)
    assert bench.log.epochs == (EpochStart(1, 0), EpochStart(4, 2))


def test_settings_that_cannot_work_are_reported_together():
    with pytest.raises(ConfigError) as caught:
        LogConfig(segment_bytes=0, index_interval_bytes=-1, scan_bytes=0).validate()
    assert len(caught.value.problems) == 3


# ---------------------------------------------------------------------- segments and reading


def test_segments_roll_by_size_and_are_named_by_base_offset(small):
    small.fill(1, 1)
    for _ in range(19):
        small.fill(1, 1)
    bases = small.log.segment_bases
    assert len(bases) > 3
    for base in bases:
        assert f"{base:020d}.log" in small.names()
        assert len(small.fs.read_bytes(HOME / f"{base:020d}.log")) <= 600
    assert [record[0] for record in contents(small.log)] == list(range(20))
    assert small.log.size_bytes == sum(
        len(small.fs.read_bytes(HOME / name)) for name in small.names() if name.endswith(".log")
    )


def test_one_append_larger_than_a_segment_goes_into_one(small):
    small.fill(1, 2)
    small.fill(1, 30)
    small.fill(1, 1)
    assert small.log.segment_bases == (0, 2, 32)


@pytest.mark.parametrize("max_bytes", [1, 150, 400, 1000, 10_000])
def test_reads_are_whole_batches_within_the_limit_but_at_least_one(max_bytes):
    """Every start, end limit and size against the plain rule, in one segment and in many."""
    for segment_bytes in (600, 1 << 20):
        bench = LogBench(segment_bytes=segment_bytes, index_interval_bytes=150)
        for count in (1, 3, 2, 1, 1, 4, 1, 2, 1, 3):
            bench.append(1, *("v" * 20 for _ in range(count)))
        whole = {}
        data = b""
        offset = 0
        while data := bench.log.read(offset, 1):
            (header,) = scan_batches(data)
            for inside in range(header.base_offset, header.end_offset):
                whole[inside] = (header, data)
            offset = header.end_offset
        end = bench.log.end.offset
        for start in range(end):
            for limit in range(start, end + 1):
                got = bench.log.read(start, max_bytes, end_offset=limit)
                headers = scan_batches(got)
                first = whole[start][0]
                if first.end_offset > limit:
                    assert got == b""
                    continue
                assert headers[0].base_offset == first.base_offset
                assert headers[-1].end_offset <= limit
                assert len(got) <= max_bytes or len(headers) == 1
                follows = whole.get(headers[-1].end_offset)
                is_cut_by_segment = headers[-1].end_offset in bench.log.segment_bases
                if follows and not is_cut_by_segment and follows[0].end_offset <= limit:
                    assert len(got) + len(follows[1]) > max_bytes


def test_reading_far_into_a_segment_does_not_read_what_lies_before():
    bench = LogBench(index_interval_bytes=1000)
    bench.fill(1, 2000)
    reads = []
    segment = bench.log._segments.active
    plain = segment.file.read_at

    class Spy:
        def read_at(self, position, size):
            reads.append((position, size))
            return plain(position, size)

    segment.file = Spy()
    bench.log.read(1900, 500)
    bench.log.digest_at(1900)
    assert min(position for position, _ in reads) > segment.trail.position * 0.94
    assert sum(size for _, size in reads) < 40_000


def test_reads_outside_the_log(bench):
    bench.append(1, "a", "b")
    bench.append(1, "c")
    assert bench.log.read(3, 100) == b""
    assert bench.log.read(99, 100) == b""
    bench.log.advance_start(OffsetAndEpoch(2, 1))
    with pytest.raises(QuorumUsageError, match="below log start 2"):
        bench.log.read(1, 100)


def test_a_read_from_a_failing_device_is_a_storage_error(bench):
    bench.append(1, "a")
    bench.fs.faults = Faults(unreadable=lambda name: name.endswith(".log"))
    with pytest.raises(StorageError, match="cannot read"):
        bench.log.read(0, 100)


def test_digests_are_known_at_every_boundary_and_nowhere_else(small):
    for count in (1, 2, 3, 1, 5, 2, 1, 1, 1, 4):
        small.append(1, *("v" * 20 for _ in range(count)))
    expected = chain_values(small.log)
    assert len(small.log.segment_bases) > 2
    for offset in range(small.log.end.offset + 2):
        assert small.log.digest_at(offset) == expected.get(offset, b"")
    small.reopen()
    for offset in range(small.log.end.offset + 2):
        assert small.log.digest_at(offset) == expected.get(offset, b"")


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

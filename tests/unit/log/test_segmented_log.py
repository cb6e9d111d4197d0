"""The log on disk as a ``LogStore``: appending, reading, cutting, replacing."""

from __future__ import annotations

import pytest

from quorum.batch import scan_batches
from quorum.digest import EMPTY_LOG_DIGEST
from quorum.errors import (
    ConfigError,
    CorruptBatchError,
    QuorumUsageError,
    StorageError,
)
from quorum.log import append_checks
from quorum.log.config import LogConfig
from quorum.types import EpochStart, OffsetAndEpoch
from simulation.memory_filesystem import Faults
from tests.support.log_builder import HOME, LogBench, chain_values, contents, make_batch


@pytest.fixture
def bench():
    return LogBench()


@pytest.fixture
def small():
    """Segments of a few batches, an index entry for nearly every batch."""
    return LogBench(segment_bytes=600, index_interval_bytes=150, scan_bytes=200)


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


def test_headers_that_the_caller_verified_are_not_read_again(bench, monkeypatch):
    data = make_batch(0, 1, [b"x"]) + make_batch(1, 2, [b"y", b"z"])
    headers = scan_batches(data)
    monkeypatch.setattr(append_checks, "scan_batches", None)
    bench.log.append(data, base_offset=0, end_offset=3, headers=headers)
    assert contents(bench.log) == [(0, 1, b"x"), (1, 2, b"y"), (2, 2, b"z")]
    assert bench.log.epochs == (EpochStart(1, 0), EpochStart(2, 1))


@pytest.mark.parametrize(
    ("base_offset", "value", "reason"),
    [(0, b"longer", "base offset 0 where 1 follows"), (1, b"x", "end at 2 after 69 bytes")],
)
def test_headers_of_other_bytes_are_refused(bench, base_offset, value, reason):
    bench.append(1, "a")
    data, headers = make_batch(1, 1, [b"longer"]), scan_batches(make_batch(base_offset, 1, [value]))
    with pytest.raises((QuorumUsageError, CorruptBatchError), match=reason):
        bench.log.append(data, base_offset=1, end_offset=2, headers=headers)
    assert contents(bench.log) == [(0, 1, b"a")]


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
    # The first entry may name the epoch that continues (see ReceivedRecords).
    epoch_starts = [EpochStart(1, 1), EpochStart(4, 2)]
    bench.log.append(data, base_offset=1, end_offset=3, epochs=epoch_starts)
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


def test_what_a_log_start_would_give_back_is_what_it_gives(small):
    """Goal: the sum is of whole segments, and of none twice. Method: every pair of starts, then
    the log start moved to the higher one.
    """
    small.fill(1, 8)
    small.fill(1, 3)
    small.fill(1, 9)
    for _ in range(6):
        small.fill(1, 1)
    log, end = small.log, small.log.end.offset
    assert len(log.segment_bases) >= 4
    for low in range(end + 1):
        assert log.covered_bytes(low, beside=end) == 0
        for high in range(low, end + 1):
            more = log.covered_bytes(high, beside=low)
            assert more == log.covered_bytes(high) - log.covered_bytes(low)
    for offset in range(1, end + 1):
        size, promised = log.size_bytes, log.covered_bytes(offset)
        log.advance_start(OffsetAndEpoch(offset, 1))
        assert size - log.size_bytes == promised


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
    assert min(position for position, _ in reads) > segment.tail.position * 0.94
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

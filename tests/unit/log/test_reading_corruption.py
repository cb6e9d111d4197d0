"""Reads of a log whose file becomes corrupt while it is open: records or an error."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from quorum.batch import scan_batches
from quorum.errors import CorruptBatchError, StorageError
from tests.support.log_builder import LogBench

RECORDS = 12
LARGE = 1 << 20


def test_corruption_is_never_taken_for_the_end_of_the_log() -> None:
    """Goal: no record seems not to be there. Method: every bit of every header, every offset."""
    bench = LogBench(segment_bytes=600, index_interval_bytes=150)
    for _ in range(RECORDS):
        bench.append(1, "a", flush=False)
    bench.log.flush()
    seen = set()
    for base in bench.log.segment_bases:
        path = bench.path(f"{base:020d}.log")
        headers = scan_batches(bench.fs.read_bytes(path))
        for header in headers:
            for bit in range(61 * 8):
                bench.fs.flip_bit(path, header.position + bit // 8, bit % 8)
                for offset in range(header.base_offset, header.end_offset):
                    for end in (header.end_offset, bench.log.end.offset):
                        seen.add(outcome(bench, offset, end))
                bench.fs.flip_bit(path, header.position + bit // 8, bit % 8)
    assert seen == {"records", "error"}


def test_corruption_is_never_taken_for_a_mistake_or_for_another_place() -> None:
    """Goal: a cut meets its place or an error. Method: each bit of each header, each end."""
    bench = LogBench(segment_bytes=600, index_interval_bytes=150)
    for number in range(RECORDS):
        bench.append(1 + number // 5, "a", flush=False)
    bench.log.flush()
    segments = bench.log._segments
    seen = Counter[str]()
    for base in bench.log.segment_bases:
        path = bench.path(f"{base:020d}.log")
        headers = scan_batches(bench.fs.read_bytes(path))
        segment = segments.containing(base)
        places = {
            end: segment.tail_at(end) for end in [base, *(each.end_offset for each in headers)]
        }
        for header in headers:
            for bit in range(61 * 8):
                bench.fs.flip_bit(path, header.position + bit // 8, bit % 8)
                for end, place in places.items():
                    try:
                        found = segment.tail_at(end)
                    except CorruptBatchError:
                        seen["error"] += 1
                    else:
                        assert found == place
                        seen["place"] += 1
                bench.fs.flip_bit(path, header.position + bit // 8, bit % 8)
    assert min(seen["error"], seen["place"]) > 61 * 8 * RECORDS // 2, seen


def outcome(bench: LogBench, offset: int, end_offset: int) -> str:
    """What a reader of one offset gets."""
    try:
        data = bench.log.read(offset, 1, end_offset=end_offset)
    except CorruptBatchError:
        return "error"
    except StorageError as error:
        return repr(error)
    return "records" if data else "nothing"


def test_a_batch_that_ends_above_the_end_asked_for_is_no_corruption() -> None:
    bench = LogBench(index_interval_bytes=150)
    for _ in range(3):
        bench.append(1, "a", "b")
    ends = [*range(0, bench.log.end.offset + 1, 2)]
    for first, last in pairwise(ends):
        assert bench.log.read(first, LARGE, end_offset=last - 1) == b""
        assert bench.log.read(first, LARGE, end_offset=last)

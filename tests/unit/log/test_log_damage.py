"""What a crash cannot explain is named and left untouched."""

from __future__ import annotations

import random

import pytest

from quorum.errors import IdentityError, LogDamagedError
from quorum.log.layout import WATERMARK_NAMES
from simulation.memory_filesystem import REORDERED
from tests.support.log_builder import HOME, LogBench, contents, make_batch

FIRST = HOME / f"{0:020d}.log"


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


# ---------------------------------------------------------------------- damage


def test_a_bad_batch_with_a_valid_one_behind_it_is_damage(bench):
    bench.append(1, "a")
    first = len(bench.fs.read_bytes(FIRST))
    bench.append(1, "b")
    bench.append(1, "c")
    unmark(bench)
    bench.fs.flip_bit(FIRST, first + 65)
    before = bench.fs.read_bytes(FIRST)
    with pytest.raises(LogDamagedError, match="valid batch of offset 2 follows") as caught:
        bench.open()
    assert caught.value.path == FIRST
    assert (caught.value.position, caught.value.offset) == (first, 1)
    assert bench.fs.read_bytes(FIRST) == before


def test_a_valid_batch_is_found_even_if_lengths_lie(bench):
    bench.append(1, "a")
    bench.append(1, "b" * 100)
    bench.append(1, "c")
    unmark(bench)
    second = len(make_batch(0, 1, [b"a"]))
    bench.fs.flip_bit(FIRST, second + 10, 3)
    with pytest.raises(LogDamagedError, match="valid batch of offset 2"):
        bench.open()


def test_a_bad_last_batch_below_the_durable_end_is_damage(bench):
    bench.append(1, "a")
    bench.append(1, "b")
    bench.fs.flip_bit(FIRST, len(bench.fs.read_bytes(FIRST)) - 2)
    before = bench.fs.read_bytes(FIRST)
    with pytest.raises(LogDamagedError, match=r"damaged batch.*on disk up to offset 2"):
        bench.open()
    assert bench.fs.read_bytes(FIRST) == before


def test_a_bad_last_batch_above_the_durable_end_is_a_torn_tail(bench):
    bench.append(1, "a")
    bench.append(1, "b")
    unmark(bench)
    bench.fs.flip_bit(FIRST, len(bench.fs.read_bytes(FIRST)) - 2)
    assert contents(bench.open()) == [(0, 1, b"a")]


def test_a_bad_batch_in_an_older_segment_is_damage():
    bench = rolled()
    base = bench.log.segment_bases[1]
    unmark(bench)
    path = HOME / f"{base:020d}.log"
    bench.fs.flip_bit(path, len(bench.fs.read_bytes(path)) - 2)
    with pytest.raises(LogDamagedError, match="newer segments follow") as caught:
        bench.open()
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("base_offset", "epoch", "reason"),
    [(5, 3, "base offset 5 where 1 follows"), (1, 2, "leader epoch 2 after epoch 3")],
    ids=["gap", "older-epoch"],
)
def test_a_valid_batch_that_does_not_join_is_damage(bench, base_offset, epoch, reason):
    bench.append(3, "a")
    unmark(bench)
    stranger = make_batch(base_offset, epoch, [b"stranger"])
    bench.fs.write_bytes(FIRST, bench.fs.read_bytes(FIRST) + stranger)
    with pytest.raises(LogDamagedError, match=reason):
        bench.open()


@pytest.mark.parametrize("which", [0, 2, -1], ids=["first", "middle", "last"])
def test_a_missing_segment_is_damage(which):
    bench = rolled()
    base = bench.log.segment_bases[which]
    bench.fs.unlink(HOME / f"{base:020d}.log")
    with pytest.raises(LogDamagedError):
        bench.open()


def test_a_log_shorter_than_its_durable_end_is_damage(bench):
    bench.append(1, "a")
    size = len(bench.fs.read_bytes(FIRST))
    bench.append(1, "b")
    bench.fs.write_bytes(FIRST, bench.fs.read_bytes(FIRST)[:size])
    with pytest.raises(LogDamagedError, match="up to offset 2 and ends here"):
        bench.open()


def test_header_fields_outside_the_checksum_are_covered_by_the_digest(bench):
    """A flipped epoch keeps offsets, sizes and checksums intact."""
    bench.append(1, "a")
    position = len(bench.fs.read_bytes(FIRST))
    bench.append(1, "b")
    bench.fs.flip_bit(FIRST, position + 15, 2)
    with pytest.raises(LogDamagedError, match="digest differs"):
        bench.open()


def test_a_flipped_epoch_in_a_sealed_segment_is_found_at_the_next_ones_base():
    bench = rolled()
    unmark(bench)
    bench.fs.flip_bit(FIRST, 12 + 3, 0)
    with pytest.raises(LogDamagedError, match="digest differs") as caught:
        bench.open()
    assert caught.value.path == FIRST


@pytest.mark.long
def test_every_flipped_bit_in_every_file_is_found_or_has_no_effect():
    """Nothing silent: either an error, or exactly the log that was written."""
    source = rolled(9)
    source.append(3, "last")
    source.log.store_high_watermark(5)
    source.log.close()
    expected = (contents(source.open()), source.log.epochs, source.log.digest_at(10))
    rng = random.Random(1)
    found = harmless = 0
    for name in source.names():
        for position in range(len(source.fs.read_bytes(HOME / name))):
            bench = LogBench(segment_bytes=600, index_interval_bytes=150)
            bench.fs = source.fs.clone()
            bench.fs.flip_bit(HOME / name, position, rng.randrange(8))
            try:
                bench.open()
            except (LogDamagedError, IdentityError):
                found += 1
                continue
            assert (contents(bench.log), bench.log.epochs, bench.log.digest_at(10)) == expected
            harmless += 1
            assert not name.endswith(".log"), f"bit in {name} at {position} not noticed"
    assert found > 500
    assert harmless > 100


def test_reordered_writes_never_pass_as_a_whole_log():
    outcomes = set()
    for seed in range(60):
        bench = LogBench()
        bench.append(1, "durable")
        bench.append(1, "one", flush=False)
        bench.append(1, "two", flush=False)
        bench.crash(REORDERED, seed)
        try:
            bench.open()
        except LogDamagedError as error:
            outcomes.add(("damage", error.offset))
            continue
        values = [value for _, _, value in contents(bench.log)]
        assert values == [b"durable", b"one", b"two"][: len(values)]
        outcomes.add(len(values))
    assert outcomes == {1, 2, 3, ("damage", 1)}

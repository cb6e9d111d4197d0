"""The durable mark is stored twice: one file may be lost; without both the mark is unknown."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest
from crc32c import crc32c

from quorum.log.high_watermark_file import HighWatermarkFile, Watermarks, load_watermarks
from quorum.log.layout import WATERMARK_NAME, WATERMARK_NAMES
from simulation.memory_filesystem import KEEP_ALL, TORN_TAIL, Faults, MemoryFileSystem, PowerLost

HOME = Path("/log")
OWNER, OTHER = b"o" * 16, b"x" * 16
FIRST = Watermarks(3, 5, 1, b"a" * 16)
SECOND = Watermarks(4, 9, 2, b"b" * 16)
SLOTS = (0, 512, 1024, 1536)


@pytest.fixture(name="fs")
def _fs() -> MemoryFileSystem:
    fs = MemoryFileSystem()
    fs.make_directory(HOME)
    return fs


def stored(fs: MemoryFileSystem, owner: bytes = OWNER) -> None:
    file = HighWatermarkFile(fs, HOME, owner)
    file.store_durably(FIRST)
    file.store(SECOND)
    file.close()


def test_missing_marks_are_not_zero_for_readers(fs: MemoryFileSystem) -> None:
    assert load_watermarks(fs, HOME) is None
    assert HighWatermarkFile(fs, HOME).marks == Watermarks()
    assert load_watermarks(fs, HOME) == Watermarks()


@pytest.mark.parametrize("name", WATERMARK_NAMES)
def test_every_damage_to_one_of_the_files_is_repaired_and_named(
    fs: MemoryFileSystem, name: str
) -> None:
    """Goal: nothing is lost or healed without a word. Method: every byte, every cut, no file."""
    stored(fs)
    whole = fs.read_bytes(HOME / name)
    damages = [whole[:size] for size in range(len(whole))] + [whole + b"\0", bytes(len(whole))]
    for position in range(len(whole)):
        flipped = bytearray(whole)
        flipped[position] ^= 1 << position % 8
        damages.append(bytes(flipped))
    for damaged in damages:
        fs.write_bytes(HOME / name, damaged)
        assert load_watermarks(fs, HOME, OWNER) == SECOND
        file = HighWatermarkFile(fs, HOME, OWNER)
        assert (file.marks, file.repaired) == (SECOND, (name,))
        file.close()
        again = HighWatermarkFile(fs, HOME, OWNER)
        assert (again.marks, again.repaired) == (SECOND, ())
        again.close()
    fs.take_away(HOME / name)
    assert HighWatermarkFile(fs, HOME, OWNER).repaired == (name,)


@pytest.mark.parametrize("name", WATERMARK_NAMES)
def test_an_older_file_counts_for_nothing(fs: MemoryFileSystem, name: str) -> None:
    stored(fs)
    older = fs.read_bytes(HOME / name)
    file = HighWatermarkFile(fs, HOME, OWNER)
    file.secure(Watermarks(9, 20, 2))
    file.close()
    fs.write_bytes(HOME / name, older)
    file = HighWatermarkFile(fs, HOME, OWNER)
    assert (file.marks, file.repaired) == (Watermarks(9, 20, 2), (name,))


def test_marks_of_another_disk_are_none(fs: MemoryFileSystem) -> None:
    other = MemoryFileSystem()
    other.make_directory(HOME)
    stored(other, OTHER)
    stored(fs)
    fs.write_bytes(HOME / WATERMARK_NAME, other.read_bytes(HOME / WATERMARK_NAME))
    assert load_watermarks(fs, HOME, OWNER) == SECOND
    assert HighWatermarkFile(fs, HOME, OWNER).repaired == (WATERMARK_NAME,)
    for name in WATERMARK_NAMES:
        fs.write_bytes(HOME / name, other.read_bytes(HOME / name))
    assert load_watermarks(fs, HOME, OWNER) is None
    assert load_watermarks(fs, HOME) == SECOND, "a tool does not know whose it is"


def test_power_lost_in_any_call_leaves_the_marks_before_it_or_after_it() -> None:
    """Goal: known at any time. Method: every changing call of repairs and stores, torn."""
    lowered = Watermarks(3, 7, 1)
    for call in range(30):
        for seed in range(4):
            fs = MemoryFileSystem()
            fs.make_directory(HOME)
            stored(fs)
            fs.write_back()
            fs.flip_bit(HOME / WATERMARK_NAMES[seed % 2], SLOTS[seed] + 9)
            fs.faults = Faults(stop_after_call=call)
            try:
                file = HighWatermarkFile(fs, HOME, OWNER)
                file.secure(Watermarks(5, 12, 2))
                file.store_durably(lowered)
            except PowerLost:
                fs.crash(random.Random(seed), TORN_TAIL if seed else KEEP_ALL)
            found = load_watermarks(fs, HOME, OWNER)
            assert found in (SECOND, Watermarks(5, 12, 2), lowered)


def test_durably_stored_marks_leave_no_older_ones(fs: MemoryFileSystem) -> None:
    file = HighWatermarkFile(fs, HOME)
    file.store(Watermarks(3, 50, 1))
    file.store_durably(Watermarks(3, 20, 1))
    fs.crash(random.Random(0))
    for slot in SLOTS:
        copy = fs.clone()
        for name in WATERMARK_NAMES:
            copy.flip_bit(HOME / name, slot + 10)
        assert HighWatermarkFile(copy, HOME).marks.durable_offset == 20


def test_the_file_of_an_earlier_release_is_taken_over(fs: MemoryFileSystem) -> None:
    body = struct.pack(">4sQqqiB16s", b"QHW1", 7, 4, 9, 2, True, b"b" * 16)
    content = bytearray(1589)
    for slot in SLOTS:
        content[slot : slot + 53] = body + crc32c(body).to_bytes(4, "big")
    fs.write_bytes(HOME / WATERMARK_NAME, bytes(content))
    assert load_watermarks(fs, HOME, OWNER) == SECOND
    file = HighWatermarkFile(fs, HOME, OWNER)
    assert (file.marks, file.repaired) == (SECOND, ())
    file.close()
    assert [fs.read_bytes(HOME / name)[:4] for name in WATERMARK_NAMES] == [b"QHW2"] * 2

"""Reading a log in use again, remembering digests, condemning, and the marks that are synced."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from quorum.errors import CorruptBatchError, LogDamagedError
from quorum.log.high_watermark_file import HighWatermarkFile, Watermarks, load_watermarks
from quorum.log.layout import QUARANTINED_NAME, WATERMARK_NAMES
from quorum.log.quarantine_mark_file import (
    QuarantineMark,
    read_quarantine_mark,
    remove_quarantine_mark,
    write_quarantine_mark,
)
from quorum.log.recent_digests import BOUNDARIES_PER_GENERATION, RecentDigests
from quorum.log.verify import verify_log
from quorum.types import DigestAt
from simulation.forgery import forge_batch
from simulation.memory_filesystem import LOSE_ALL
from tests.support.log_builder import HOME, LogBench


@pytest.fixture
def bench() -> LogBench:
    return filled(400)


def filled(segment_bytes: int) -> LogBench:
    """Twenty batches of one record each."""
    bench = LogBench(segment_bytes=segment_bytes)
    for number in range(20):
        bench.append(1, f"value {number}")
    return bench


def end_of(bench: LogBench) -> DigestAt:
    end, digest = bench.log.tip
    return DigestAt(end.offset, digest)


def test_a_intact_log_verifies_while_it_is_open(bench: LogBench) -> None:
    found = verify_log(bench.fs, HOME, end_of(bench))
    assert found.damage is None
    assert found.batches == 20
    assert found.size_bytes == bench.log.size_bytes


def test_every_flipped_byte_of_every_segment_is_found(bench: LogBench) -> None:
    """Goal: corruption under a running log is seen, header fields outside the CRC included."""
    end = end_of(bench)
    names = [name for name in bench.names() if name.endswith(".log")]
    assert len(names) > 2
    silent = []
    for name in names:
        path = bench.path(name)
        for position in range(len(bench.fs.read_bytes(path))):
            bench.fs.flip_bit(path, position)
            if verify_log(bench.fs, HOME, end).damage is None:
                silent.append((name, position))
            bench.fs.flip_bit(path, position)
    assert silent == []
    assert verify_log(bench.fs, HOME, end).damage is None


def test_bytes_behind_the_end_asked_for_do_not_count() -> None:
    bench = filled(1 << 20)
    end = end_of(bench)
    newest = bench.log.segment_bases[-1]
    bench.append(1, "half written", flush=False)
    path = bench.path(f"{newest:020d}.log")
    bench.fs.flip_bit(path, len(bench.fs.read_bytes(path)) - 3)
    assert verify_log(bench.fs, HOME, end).damage is None


def test_a_log_that_ends_too_early_is_damaged(bench: LogBench) -> None:
    end = end_of(bench)
    damage = verify_log(bench.fs, HOME, replace(end, offset=end.offset + 5)).damage
    assert damage is not None
    assert "ends here" in str(damage)


def test_a_forged_history_verifies_only_against_itself(bench: LogBench) -> None:
    """The files agree among themselves; only the digest that another one holds gives it away."""
    true_end = end_of(bench)
    bench.log.close()
    assert forge_batch(bench.fs, HOME, 7) is not None
    assert verify_log(bench.fs, HOME, DigestAt(true_end.offset, b"")).damage is None
    assert verify_log(bench.fs, HOME, true_end).damage is not None


def test_digests_before_an_offset_find_the_first_difference(bench: LogBench) -> None:
    """Equal logs answer equally for any offset; forged ones differ from the forged batch on."""
    other = filled(700)
    offsets = range(bench.log.end.offset + 3)
    assert [bench.log.digest_before(each) for each in offsets] == [
        other.log.digest_before(each) for each in offsets
    ]
    other.log.close()
    assert forge_batch(other.fs, HOME, 7) is not None
    other.reopen()
    differing = [
        each for each in offsets if bench.log.digest_before(each) != other.log.digest_before(each)
    ]
    assert differing == list(range(8, bench.log.end.offset + 3))
    assert bench.log.digest_before(-1) == DigestAt(-1, b"")


def test_recent_digests_are_those_of_the_files_and_do_not_outlive_a_cut(bench: LogBench) -> None:
    remembered = {
        offset: bench.log.digest_at(offset) for offset in range(1, bench.log.end.offset + 1)
    }
    bench.log.close()
    bench.reopen()
    assert remembered == {offset: bench.log.digest_at(offset) for offset in remembered}
    bench.log.truncate_to(10)
    bench.append(2, "x")
    assert bench.log.digest_at(11) != remembered[11]


def test_recent_digests_are_bounded() -> None:
    recent = RecentDigests()
    for offset in range(3 * BOUNDARIES_PER_GENERATION):
        recent.add({offset: offset.to_bytes(8, "big")})
    last = 3 * BOUNDARIES_PER_GENERATION - 1
    assert recent.get(last) == last.to_bytes(8, "big")
    assert recent.get(last - BOUNDARIES_PER_GENERATION + 1) is not None
    assert recent.get(0) is None
    recent.clear()
    assert recent.get(last) is None


def test_a_quarantine_mark_survives_and_is_forgotten(bench: LogBench) -> None:
    assert read_quarantine_mark(bench.fs, HOME) is None
    bench.log.quarantine(7, "another history")
    bench.fs.crash(random.Random(1), LOSE_ALL)
    assert read_quarantine_mark(bench.fs, HOME) == QuarantineMark(7, "another history")
    remove_quarantine_mark(bench.fs, HOME)
    bench.fs.crash(random.Random(1), LOSE_ALL)
    assert read_quarantine_mark(bench.fs, HOME) is None


def test_a_corrupt_quarantine_mark_still_quarantines(bench: LogBench) -> None:
    write_quarantine_mark(bench.fs, HOME, QuarantineMark(7, "x"))
    bench.fs.flip_bit(bench.path(QUARANTINED_NAME), 12)
    with pytest.raises(LogDamagedError, match="its mark is damaged"):
        read_quarantine_mark(bench.fs, HOME)


def test_secured_marks_survive_power_loss_and_later_writes(bench: LogBench) -> None:
    """What was synced can be torn by nothing that is written afterwards."""
    bench.log.close()
    secured = Watermarks(3, 20, 1, b"d" * 16)
    file = HighWatermarkFile(bench.fs, HOME)
    file.secure(secured)
    for offset in (21, 22, 23):
        file.store(replace(secured, durable_offset=offset))
    file.close()
    bench.fs.crash(random.Random(1), LOSE_ALL)
    assert load_watermarks(bench.fs, HOME) == secured


def test_lowered_marks_leave_no_higher_slot(bench: LogBench) -> None:
    bench.log.close()
    file = HighWatermarkFile(bench.fs, HOME)
    file.secure(Watermarks(3, 20, 1))
    file.secure(Watermarks(4, 21, 1))
    lowered = Watermarks(4, 9, 1)
    file.store_durably(lowered)
    file.close()
    bench.fs.crash(random.Random(1), LOSE_ALL)
    for name in WATERMARK_NAMES:
        for position in (0, 512, 1024, 1536):
            bench.fs.flip_bit(HOME / name, position + 20)
            assert load_watermarks(bench.fs, HOME) == lowered
            bench.fs.flip_bit(HOME / name, position + 20)


def test_a_digest_that_others_build_on_is_proven_by_what_it_is_made_of() -> None:
    """Goal: no corruption in a checkpoint's header. Method: a bit flips below a log that was
    opened.
    """
    bench = filled(1 << 20)
    bench.reopen()
    right = bench.log.digest_at(15)
    assert bench.log.digest_at(15, prove=True) == right
    path = HOME / f"{0:020d}.log"
    bench.fs.flip_bit(path, bench.fs.read_bytes(path).index(b"value 9"))
    assert bench.log.digest_at(15) != right
    with pytest.raises(CorruptBatchError, match="checksum"):
        bench.log.digest_at(15, prove=True)

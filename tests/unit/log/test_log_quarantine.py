"""Damage is set aside with everything behind it, and the loss is stated first."""

from __future__ import annotations

import pytest

from quorum.errors import LogDamagedError
from quorum.log.damage import Loss, assess_loss, quarantine
from quorum.log.layout import WATERMARK_NAMES
from quorum.log.log_start_file import LogStart, LogStartFile
from quorum.log.verify import verify_log
from quorum.types import DigestAt, OffsetAndEpoch
from simulation.memory_filesystem import LOSE_ALL, CrashMode, Faults, PowerLost
from tests.support.log_builder import HOME, LogBench, contents

FIRST = HOME / f"{0:020d}.log"


def damaged_bench(segment=1):
    """Segments of five batches in epochs 1 to 4; one bit of one segment is wrong."""
    bench = LogBench(segment_bytes=600, index_interval_bytes=150)
    for epoch in (1, 2, 3, 4):
        for _ in range(5):
            bench.fill(epoch, 1)
    bench.log.close()
    base = bench.log.segment_bases[segment]
    bench.fs.flip_bit(HOME / f"{base:020d}.log", 200)
    return bench, base


def damage_of(bench):
    with pytest.raises(LogDamagedError) as caught:
        bench.open()
    return caught.value


def set_aside(bench, damage, floors=None):
    return quarantine(
        bench.fs, HOME, damage, store_vote_floor=(floors if floors is not None else []).append
    )


@pytest.mark.parametrize("segment", [0, 1, -1], ids=["first", "middle", "last"])
def test_the_log_ends_before_the_damage_and_the_rest_is_kept_aside(segment):
    bench, base = damaged_bench(segment)
    whole = {name: bench.fs.read_bytes(HOME / name) for name in bench.names()}
    bases = bench.log.segment_bases
    floors: list[Loss] = []
    loss = set_aside(bench, damage_of(bench), floors)
    gone = tuple(other for other in bases if other >= base)
    assert loss == Loss(base, OffsetAndEpoch(20, 4), gone)
    assert floors == [loss]
    for other in gone:
        name = f"{other:020d}.log"
        assert bench.fs.read_bytes(HOME / f"{name}.damaged") == whole[name]
    bench.open()
    assert bench.log.end.offset == base
    assert len(contents(bench.log)) == base
    bench.append(9, "refetched")
    bench.reopen()
    assert contents(bench.log)[-1] == (base, 9, b"refetched")


def test_the_vote_floor_comes_before_any_change():
    bench, _ = damaged_bench()
    damage = damage_of(bench)
    before = bench.fs.change_count

    def fail(_):
        assert bench.fs.change_count == before
        raise RuntimeError("the vote floor could not be stored")

    with pytest.raises(RuntimeError):
        quarantine(bench.fs, HOME, damage, store_vote_floor=fail)
    assert bench.fs.change_count == before


def test_quarantine_may_be_interrupted_anywhere_and_repeated():
    points = 0
    for mode in (LOSE_ALL, CrashMode(keep_names=1.0)):
        call = 0
        while True:
            bench, base = damaged_bench()
            damage = damage_of(bench)
            bench.fs.faults = Faults(stop_after_call=call)
            floors: list[Loss] = []
            try:
                set_aside(bench, damage, floors)
            except PowerLost:
                bench.crash(mode, seed=call)
                call += 1
                points += 1
            else:
                break
            try:
                bench.open()
            except LogDamagedError as again:
                set_aside(bench, again, floors)
                bench.open()
            assert bench.log.end.offset == base
            assert floors[0].end == OffsetAndEpoch(20, 4)
    assert points > 20


def test_an_earlier_quarantine_is_not_overwritten():
    bench, base = damaged_bench()
    set_aside(bench, damage_of(bench))
    first = bench.fs.read_bytes(HOME / f"{base:020d}.log.damaged")
    bench.open()
    bench.append(5, "again", "and again")
    bench.fs.flip_bit(HOME / f"{base:020d}.log", 70)
    set_aside(bench, damage_of(bench))
    assert bench.fs.read_bytes(HOME / f"{base:020d}.log.damaged") == first
    assert f"{base:020d}.log.damaged.1" in bench.names()


def test_the_stored_durable_end_counts_where_the_data_is_gone():
    bench, _ = damaged_bench()
    newest = HOME / f"{bench.log.segment_bases[-1]:020d}.log"
    bench.fs.write_bytes(newest, b"")
    loss = assess_loss(bench.fs, HOME, damage_of(bench))
    assert loss.end == OffsetAndEpoch(20, 4)


@pytest.mark.parametrize(
    ("field", "bit"),
    [(12, 6), (15, 5), (1, 3), (7, 6)],
    ids=["epoch-high", "epoch-low", "offset-high", "offset-low"],
)
def test_a_corrupt_header_cannot_raise_the_vote_floor(field, bit):
    """Epoch and offset are outside the checksum; a floor from them would silence us for ever."""
    for batch in (0, 2, 4):
        bench = LogBench()
        size = 0
        for _ in range(5):
            bench.fill(1, 1)
            size = size or len(bench.fs.read_bytes(FIRST))
        bench.fs.flip_bit(FIRST, batch * size + field, bit)
        loss = assess_loss(bench.fs, HOME, damage_of(bench))
        assert loss.end == OffsetAndEpoch(5, 1)


def test_a_wrong_epoch_file_cannot_lower_the_vote_floor():
    """Nothing protects the epoch file; ``quorum-state`` has the highest epoch of the replica."""
    bench = LogBench(segment_bytes=600, index_interval_bytes=150)
    for epoch in (1, 2, 3, 4):
        for _ in range(5):
            bench.fill(epoch, 1)
    bench.log.close()
    for name in WATERMARK_NAMES:
        bench.fs.unlink(HOME / name)
    bench.fs.write_bytes(HOME / "leader-epoch-checkpoint", b"0\n2\n1 0\n2 5\n")
    bench.fs.flip_bit(FIRST, 200)
    damage = damage_of(bench)
    assert assess_loss(bench.fs, HOME, damage).end == OffsetAndEpoch(10, 2)
    assert assess_loss(bench.fs, HOME, damage, epoch_max=4).end == OffsetAndEpoch(20, 4)


def test_a_log_start_without_a_checkpoint_sets_the_whole_log_aside():
    bench = LogBench()
    bench.fill(1, 6)
    LogStartFile(bench.fs, HOME).save(LogStart(OffsetAndEpoch(4, 1)))
    loss = set_aside(bench, damage_of(bench))
    assert loss.end == OffsetAndEpoch(6, 1)
    bench.open()
    assert bench.log.start == bench.log.end == OffsetAndEpoch(0, 0)
    assert "log-start.damaged" in bench.names()


def without_start(*snapshots):
    """A log of five segments from offset 5 on, with a corrupt ``log-start``."""
    bench = LogBench(segment_bytes=600, index_interval_bytes=150)
    for epoch in (1, 2, 3, 4):
        for _ in range(5):
            bench.fill(epoch, 1)
    second = bench.log.segment_bases[1]
    bench.log.advance_start(OffsetAndEpoch(second, 1))
    bench.log.close()
    bench.fs.flip_bit(HOME / "log-start", 12)
    bench.snapshots = list(snapshots)
    return bench, second


def test_an_unreadable_log_start_without_a_checkpoint_sets_the_whole_log_aside():
    bench, _ = without_start()
    damage = damage_of(bench)
    assert damage.path == HOME / "log-start"
    assert set_aside(bench, damage).end == OffsetAndEpoch(20, 4)
    bench.open()
    assert bench.log.start == bench.log.end == OffsetAndEpoch(0, 0)


@pytest.mark.parametrize("start", [OffsetAndEpoch(10, 2), OffsetAndEpoch(13, 3)])
def test_a_checkpoint_takes_the_place_of_an_unreadable_log_start(start):
    bench, second = without_start(start)
    corrupt = bench.fs.read_bytes(HOME / "log-start")
    bench.open()
    assert (bench.log.start, bench.log.end) == (start, OffsetAndEpoch(20, 4))
    assert [offset for offset, _, _ in contents(bench.log)] == list(range(start.offset, 20))
    assert "unusable log start" in bench.report.restored_start
    assert bench.fs.read_bytes(HOME / "log-start.damaged") == corrupt
    digest = bench.log.digest_at(20)
    assert digest
    bench.reopen()
    assert bench.report.restored_start == ""
    assert (bench.log.start, bench.log.digest_at(20)) == (start, digest)
    assert not any(name.startswith(f"{second:020d}") for name in bench.names())


def test_no_gap_is_left_behind_a_restored_log_start():
    """A segment that the restored start covers, left until the next start, would lie before a gap
    once the log is trimmed: the scrubber then takes an intact log for damaged.
    """
    bench, second = without_start(OffsetAndEpoch(13, 3))
    bench.open()
    assert f"{second:020d}.log" not in bench.names()
    bench.log.advance_start(OffsetAndEpoch(18, 4))
    end = DigestAt(bench.log.end.offset, bench.log.digest_at(bench.log.end.offset))
    assert verify_log(bench.fs, HOME, end).damage is None


def test_a_restored_log_start_survives_a_crash_at_any_point():
    points = 0
    while True:
        bench, _ = without_start(OffsetAndEpoch(13, 3))
        bench.fs.faults = Faults(stop_after_call=points)
        try:
            bench.open()
        except PowerLost:
            bench.reopen()
            points += 1
        else:
            break
        assert (bench.log.start, bench.log.end) == (OffsetAndEpoch(13, 3), OffsetAndEpoch(20, 4))
    assert points > 5


def test_a_checkpoint_of_another_history_restores_no_log_start():
    bench, _ = without_start(OffsetAndEpoch(13, 2))
    assert damage_of(bench).path == HOME / "log-start"


def test_a_checkpoint_newer_than_the_log_replaces_it_without_a_log_start():
    bench, _ = without_start(OffsetAndEpoch(40, 5))
    bench.open()
    assert bench.log.start == bench.log.end == OffsetAndEpoch(40, 5)
    assert bench.report.restored_start

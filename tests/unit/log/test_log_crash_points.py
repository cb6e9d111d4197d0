"""Power is lost behind every single change of the disk; what is left was promised.

A script uses every operation of the log, with rolls, epoch changes, trimming and replacement
in it. For each call that changes the disk, in each way the disk may treat what was not synced,
the log must open again and hold everything flushed and nothing invented.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from quorum.types import OffsetAndEpoch
from simulation.memory_filesystem import CrashMode, Faults, PowerLost
from tests.support import crash_scripts
from tests.support.log_builder import LogBench, contents, make_batch
from tests.support.log_model import LogModel

MODES = {**crash_scripts.MODES, "bytes-survive": CrashMode(keep_writes=2.0)}


class Script:
    """Runs operations on a log and, beside it, on the model.

    ``before`` and ``after`` surround the operation under way: a crash inside it may leave
    what either of them allows.
    """

    def __init__(self) -> None:
        self.bench = LogBench(segment_bytes=500, index_interval_bytes=150)
        self.before = self.after = LogModel()

    def do(self, after: LogModel, work: Callable[[], object]) -> None:
        self.after = after
        work()
        self.before = after

    def append(self, epoch: int, *counts: int) -> None:
        base = self.after.end.offset
        batches = []
        offset = base
        data = b""
        for count in counts:
            values = [f"value {offset + number}".encode() * 4 for number in range(count)]
            batches.append((epoch, values))
            data += make_batch(offset, epoch, values)
            offset += count
        log = self.bench.log
        self.do(
            self.before.appended(batches),
            lambda: log.append(data, base_offset=base, end_offset=offset),
        )

    def flush(self) -> None:
        self.do(self.before.flush(), self.bench.log.flush)

    def truncate(self, end_offset: int) -> None:
        # A cut over several segments may stop at any place behind its target.
        self.before = replace(self.before, flushed=min(self.before.flushed, end_offset))
        self.do(self.before.truncated(end_offset), lambda: self.bench.log.truncate_to(end_offset))

    def snapshot(self, offset: int, epoch: int | None = None) -> OffsetAndEpoch:
        taken = OffsetAndEpoch(offset, epoch or self.before.epoch_before(offset))
        self.before = self.after = self.before.with_snapshot(taken)
        self.bench.snapshots.append(taken)
        return taken

    def advance(self, start: OffsetAndEpoch) -> None:
        self.do(self.before.advanced(start), lambda: self.bench.log.advance_start(start))

    def replace_with(self, snapshot_id: OffsetAndEpoch) -> None:
        self.do(self.before.replaced(snapshot_id), lambda: self.bench.log.replace_with(snapshot_id))

    def high_watermark(self, offset: int) -> None:
        self.bench.log.store_high_watermark(offset)

    def run(self) -> None:
        self.append(1, 1, 2)
        self.flush()
        self.append(1, 3)
        self.high_watermark(3)
        self.append(2, 1, 1, 1)
        self.flush()
        for _ in range(4):
            self.append(3, 2)
        self.flush()
        self.append(3, 2)
        self.truncate(11)
        self.append(5, 4, 1)
        self.flush()
        self.truncate(6)
        self.append(6, 2, 2)
        self.append(6, 5)
        self.advance(self.snapshot(8))
        self.append(7, 3)
        self.flush()
        self.high_watermark(12)
        self.advance(self.snapshot(15))
        self.append(7, 1)
        self.replace_with(self.snapshot(40, 9))
        self.append(9, 2)
        self.flush()
        self.append(10, 1, 1)
        self.replace_with(self.snapshot(42, 11))
        self.append(11, 2, 2, 2)
        self.flush()


def found_in(script: Script) -> LogModel:
    """The opened log as a model; its parts must agree with one another."""
    log = script.bench.log
    records = tuple(contents(log))
    model = LogModel(start=log.start, records=records)
    assert log.end == model.end
    assert log.epochs == model.epochs
    assert script.bench.report.end == log.end
    assert log.start.offset <= log.high_watermark <= log.end.offset
    return model


def crashes(mode: CrashMode) -> Iterator[Script]:
    """The script, stopped behind each of its changes in turn and crashed."""
    call = 0
    while True:
        script = Script()
        script.bench.fs.faults = Faults(stop_after_call=call)
        try:
            script.run()
        except PowerLost:
            script.bench.crash(mode, seed=call)
            yield script
            call += 1
            continue
        assert call > 100, "the script should make more calls than this"
        return


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES.keys())
def test_every_crash_point_leaves_what_was_promised(mode):
    for script in crashes(mode):
        script.bench.open()
        found = found_in(script)
        assert script.before.allows(found) or script.after.allows(found), (
            script.before,
            script.after,
            found,
        )
        check_goes_on(script, found)


def check_goes_on(script: Script, found: LogModel) -> None:
    """The log that was opened takes appends and keeps them."""
    script.before = script.after = found.flush()
    script.append(20, 1)
    script.flush()
    expected = script.before.records
    script.bench.reopen()
    assert found_in(script).records == expected


@pytest.mark.parametrize("mode", [MODES["lose-all"], MODES["names-in-order"], MODES["keep-all"]])
def test_power_may_be_lost_again_at_any_point_of_the_recovery(mode):
    points = 0
    for number, script in enumerate(crashes(mode)):
        if number % 5:
            continue
        left = script.bench.fs
        call = 0
        while True:
            script.bench.fs = left.clone()
            script.bench.fs.faults = Faults(stop_after_call=call)
            try:
                script.bench.open()
                break
            except PowerLost:
                points += 1
                call += 1
            script.bench.reopen(mode, seed=call)
            found = found_in(script)
            assert script.before.allows(found) or script.after.allows(found)
    assert points > 200

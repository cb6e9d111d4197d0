"""Write groups: order of effects, one write for a run of appends, one sync for a pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorum.core.contract.output import Append, SaveElectionState, StoreHighWatermark, Truncate
from quorum.errors import QuorumUsageError, StorageError
from quorum.log.election_store import ElectionFile
from quorum.log.recovery import open_log
from quorum.runtime.delivery import Delivery, end_offset_of
from quorum.runtime.persistence import Persistence
from quorum.runtime.ports import WriteDone, WriteGroup
from quorum.runtime.verified_batches import VerifiedTail
from quorum.runtime.writer import WriterThread
from quorum.types import ElectionState
from simulation.memory_filesystem import Faults, MemoryFileSystem
from tests.support.log_builder import make_batch

FOLDER = Path("/p")


class CountingLog:
    """Passes everything on to a real log and notes the calls that matter."""

    def __init__(self, log: object) -> None:
        self._log = log
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> object:
        found = getattr(self._log, name)
        if name not in ("append", "flush", "truncate_to"):
            return found

        def call(*arguments: object, **named: object) -> object:
            self.calls.append(name)
            return found(*arguments, **named)

        return call


def made() -> tuple[MemoryFileSystem, CountingLog, Persistence]:
    fs = MemoryFileSystem()
    log, _ = open_log(fs, FOLDER)
    counting = CountingLog(log)
    snapshots: object = None
    return fs, counting, Persistence(counting, ElectionFile(fs, FOLDER), snapshots)  # type: ignore[arg-type]


def append(base: int, epoch: int = 1) -> Append:
    return Append(base, base + 1, epoch, make_batch(base, epoch, [b"v%d" % base]))


def test_adjacent_appends_of_many_groups_are_one_write_and_one_sync() -> None:
    """Goal: group commit. Method: three groups in one pass."""
    _, log, persistence = made()
    done = persistence.execute([WriteGroup(n + 1, (append(n),)) for n in range(3)])
    assert log.calls == ["append", "flush"]
    assert (done.ticket, done.flushed) == (3, True)


def test_an_epoch_is_on_disk_before_records_of_it_are_written() -> None:
    """Goal: the order of effects. Method: lose power right after the election file is safe."""
    fs, log, persistence = made()
    state = ElectionState(epoch=2, leader_id=1)
    persistence.execute([WriteGroup(1, (append(0), SaveElectionState(state), append(1, 2)))])
    assert log.calls == ["append", "append", "flush"]
    assert ElectionFile(fs, FOLDER).load() == state


def test_a_truncation_between_appends_keeps_its_place() -> None:
    """Goal: no reordering around a cut. Method: append, cut, append at the same offset."""
    _, log, persistence = made()
    effects = (append(0), append(1), Truncate(1), append(1, 2))
    persistence.execute([WriteGroup(1, effects)])
    assert log.calls == ["append", "truncate_to", "append", "flush"]
    assert end_offset_of(log.read(0, 1 << 20)) == 2  # type: ignore[operator]


def test_a_high_watermark_that_finds_no_space_stops_nothing() -> None:
    """Goal: a lower bound may lag. Method: a full disk, then space again."""
    fs, log, persistence = made()
    persistence.execute([WriteGroup(1, (append(0), append(1)))])
    fs.faults = Faults(full_at_write=0)
    assert persistence.execute([WriteGroup(2, (StoreHighWatermark(1),))]).ticket == 2
    fs.faults = Faults()
    persistence.execute([WriteGroup(3, (StoreHighWatermark(2), append(2)))])
    assert (log.high_watermark, end_offset_of(log.read(2, 1 << 20))) == (2, 3)  # type: ignore[operator]


def test_the_writer_thread_stops_at_the_first_failure() -> None:
    """Goal: a failed sync is not retried. Method: the disk fails, two groups are queued."""
    fs, _, persistence = made()
    fs.faults = Faults(error_at_sync=0)
    failures: list[BaseException] = []
    done: list[WriteDone] = []
    writer = WriterThread(persistence, on_done=done.append, on_failure=failures.append)
    writer.submit(WriteGroup(1, (append(0),)))
    writer.start()
    assert not writer.stop(), "it says that all was written"
    writer.submit(WriteGroup(2, (append(1),)))
    assert done == []
    assert [writer.failure] == failures
    assert [type(error) for error in failures] == [StorageError]


def test_a_mistake_of_ours_ends_the_writer_loudly() -> None:
    """Goal: no node that waits for ever. Method: an append that does not follow the log."""
    _, _, persistence = made()
    failures: list[BaseException] = []
    done: list[WriteDone] = []
    writer = WriterThread(persistence, on_done=done.append, on_failure=failures.append)
    writer.submit(WriteGroup(1, (append(7),)))
    writer.start()
    assert not writer.stop()
    assert done == []
    assert [type(error) for error in failures] == [QuorumUsageError]


def test_the_writer_thread_finishes_what_is_queued() -> None:
    """Goal: a clean stop loses nothing. Method: queue, then stop."""
    _, log, persistence = made()
    done: list[WriteDone] = []
    writer = WriterThread(persistence, on_done=done.append, on_failure=pytest.fail)
    for n in range(5):
        writer.submit(WriteGroup(n + 1, (append(n),)))
    writer.start()
    assert writer.stop()
    assert (writer.is_running, writer.failure) == (False, None)
    assert done[-1].ticket == 5
    assert log.end.offset == 5  # type: ignore[attr-defined]


def test_delivery_is_contiguous_and_in_bounded_pieces() -> None:
    """Goal: every committed range once, in order. Method: two marks over five batches."""
    batches = [make_batch(n, 1, [b"x"]) for n in range(5)]
    progress: list[tuple[int, int]] = []

    class Ear:
        def on_committed(self, data: bytes, end_offset: int, _verified: object) -> None:
            progress.append((len(data), end_offset))

    def read(offset: int, max_bytes: int, end_offset: int) -> bytes:
        del max_bytes, end_offset
        return batches[offset]

    delivery = Delivery(read, VerifiedTail(), Ear())  # type: ignore[arg-type]
    delivery.deliver_to(2)
    delivery.deliver_to(2)
    delivery.deliver_to(5)
    assert [end for _, end in progress] == [1, 2, 3, 4, 5]

"""A checkpoint without space is reported, waits, and leaves the log its reserve."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from prometheus_client import CollectorRegistry

from metrics.families import Families
from metrics.observer import Observer
from quorate.logs import render
from quorate.replica.checkpoint_space import LOG_RESERVE_BYTES, RETRY_MAX_MS, RETRY_MIN_MS
from quorum.core.contract.events import CheckpointFailed
from quorum.core.contract.local_events import SnapshotRemoved
from quorum.core.replication import trimming
from quorum.errors import DiskFullError
from quorum.log.config import LogConfig
from simulation.memory_filesystem import Faults
from snapshot.config import SnapshotConfig
from snapshot.writer import PartFile
from statemachine.commands import ConfigChange, IncrementalAlterConfigs, ResourceType
from tests.support.lone_replica import LoneReplica

pytestmark = pytest.mark.interpreted
"""Part files find no space by a replaced method, which compiled code does not look up."""
SMALL = SnapshotConfig(min_changed_records_ratio=0.5, max_bytes_between=2_000)


def change(number: int, *, resources: int = 10, size: int = 0) -> IncrementalAlterConfigs:
    """A command that gives one of ``resources`` a value of at least ``size`` bytes."""
    value = ConfigChange("match", value=f"a=value-{number:0{size}}")
    name = str(number % resources)
    return IncrementalAlterConfigs(int(ResourceType.CLIENT_METRICS), name, (value,))


def write(bench: LoneReplica, count: int) -> None:
    """So many acknowledged changes, without moving time."""
    for n in range(count):
        assert bench.write(change(n)), "answered"


def failed(bench: LoneReplica) -> list[CheckpointFailed]:
    """Return the reports about checkpoints without space."""
    return [event for event in bench.events if isinstance(event, CheckpointFailed)]


def leader() -> LoneReplica:
    """One with a checkpoint of its own."""
    bench = LoneReplica(snapshot=SMALL).boot().lead()
    write(bench, 60)
    assert bench.replica.node.snapshots
    return bench


def without_room_for_parts(monkeypatch) -> list[int]:
    """From now on part files find no space, the log still does; the list grows by every try."""
    tries: list[int] = []

    def refuse(part: PartFile, data: bytes) -> None:
        tries.append(len(data))
        raise DiskFullError("no space", part.path)

    monkeypatch.setattr(PartFile, "append", refuse)
    return tries


def test_a_checkpoint_without_space_is_reported_with_its_cause(monkeypatch):
    """Goal: the operator is notified. Method: part files find no space."""
    bench = leader()
    without_room_for_parts(monkeypatch)
    write(bench, 60)
    (event,) = failed(bench)
    assert event.retry_ms == RETRY_MIN_MS
    assert "no space" in event.cause
    assert render(event).startswith("event=checkpoint_failed snapshot_id=")
    registry = CollectorRegistry()
    observer = Observer(Families(registry))
    observer.on_event(event, 0.0)
    observer.settle()
    labels = {"operation": "generate"}
    assert registry.get_sample_value("quorate_snapshot_failures_total", labels) == 1


def test_it_is_not_retried_before_time_has_passed(monkeypatch):
    """Goal: a full disk is not filled by every write. Method: 200 writes at one moment."""
    bench = leader()
    tries = without_room_for_parts(monkeypatch)
    write(bench, 200)
    assert len(tries) == 1
    assert not bench.failures


def test_the_pause_doubles_up_to_a_bound(monkeypatch):
    """Goal: at most one try in a pause, forever. Method: time moves a second, 300 times."""
    bench = leader()
    without_room_for_parts(monkeypatch)
    write(bench, 60)
    for _ in range(300):
        bench.advance(1_000)
    pauses = [event.retry_ms for event in failed(bench)]
    assert pauses[:7] == [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, RETRY_MAX_MS]
    assert set(pauses[7:]) == {RETRY_MAX_MS}
    assert len(pauses) <= 7 + 300_000 // RETRY_MAX_MS


def test_it_is_written_by_itself_once_there_is_room(monkeypatch):
    """Goal: no write is needed for a retry. Method: free space, and advance by the pause."""
    bench = leader()
    before = bench.replica.node.snapshots[-1]
    with monkeypatch.context() as patch:
        without_room_for_parts(patch)
        write(bench, 60)
    bench.advance(RETRY_MIN_MS - 1)
    assert bench.replica.node.snapshots[-1] == before
    bench.advance(1)
    bench.replica.tick()
    assert bench.replica.node.snapshots[-1].offset > before.offset
    without_room_for_parts(monkeypatch)
    write(bench, 60)
    assert failed(bench)[-1].retry_ms == RETRY_MIN_MS, "the count began anew"


def test_a_failure_is_no_checkpoint_for_the_age(monkeypatch):
    """Goal: the age that is alerted on grows on. Method: the age before and after a failure."""
    bench = leader()
    bench.advance(5_000)
    without_room_for_parts(monkeypatch)
    write(bench, 60)
    assert failed(bench)
    assert bench.replica.checkpoints.age_ms >= 5_000


def test_none_is_begun_where_it_would_leave_the_log_no_space(monkeypatch):
    """Goal: the log can grow. Method: less is free than the checkpoint and the log's reserve."""
    bench = leader()
    before = bench.replica.node.snapshots
    tries = without_room_for_parts(monkeypatch)
    room = LOG_RESERVE_BYTES
    bench.fs.faults = Faults(capacity_bytes=bench.fs.used_bytes() + room)
    write(bench, 60)
    assert not tries
    assert bench.replica.node.snapshots == before
    assert "bytes free" in failed(bench)[0].cause
    monkeypatch.undo()
    bench.fs.faults = Faults(capacity_bytes=bench.fs.used_bytes() + room + (1 << 20))
    bench.advance(RETRY_MIN_MS)
    bench.replica.tick()
    assert bench.replica.node.snapshots[-1].offset > before[-1].offset


def test_a_missing_checkpoint_waits_as_well(monkeypatch):
    """Goal: no try a second on a full disk. Method: none on offer, twenty seconds."""
    bench = leader()
    write(bench, 60)
    bench.advance(10_000)
    tries = without_room_for_parts(monkeypatch)
    for snapshot_id in bench.replica.node.snapshots:
        bench.replica.on_local_event(SnapshotRemoved(snapshot_id))
    assert bench.replica.checkpoints.is_missing
    for _ in range(40):
        bench.advance(500)
    assert [event.retry_ms for event in failed(bench)] == [1_000, 2_000, 4_000, 8_000, 16_000]
    assert len(tries) == 5


def room_for(bench: LoneReplica, size_bytes: int) -> None:
    """From now on so much is free, beside what the log has in reserve."""
    room = LOG_RESERVE_BYTES + size_bytes
    bench.fs.faults = Faults(capacity_bytes=bench.fs.used_bytes() + room)


def parts(bench: LoneReplica) -> list[str]:
    """Part files on the disk."""
    folder = bench.replica.stores.directory
    return [name for name in bench.fs.list_directory(folder) if name.endswith(".part")]


@contextmanager
def free_after_each_batch(bench: LoneReplica) -> Iterator[list[int]]:
    """What is free whenever a part has grown."""
    free: list[int] = []
    append = PartFile.append

    def noted(part: PartFile, data: bytes) -> None:
        append(part, data)
        free.append(bench.fs.free_bytes(part.path) or 0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PartFile, "append", noted)
        yield free


def test_a_long_log_of_one_key_needs_little_room_for_its_checkpoint():
    """Goal: such a log is trimmed where it is needed most. Method: one key of a hundred changes
    a thousand times, so that no checkpoint is due; then all change, with room for a small one.
    """
    config = SnapshotConfig(min_changed_records_ratio=0.5, max_bytes_between=100_000)
    bench = LoneReplica(snapshot=config).boot().lead()
    for n in range(100):
        assert bench.write(change(n, resources=100, size=1_000))
    before = bench.replica.node.snapshots[-1]
    size_bytes = bench.replica.stores.snapshots.size(before)
    for n in range(1_000):
        assert bench.write(change(n, resources=1, size=1_000))
    assert bench.replica.node.snapshots[-1] == before
    assert bench.replica.controller.checkpoint.bytes_since > 1_000_000
    room_for(bench, 500_000)
    for n in range(100):
        assert bench.write(change(n, resources=100, size=1_001))
    assert not failed(bench)
    newest = bench.replica.node.snapshots[-1]
    assert newest.offset > before.offset
    assert bench.replica.stores.snapshots.size(newest) < 2 * size_bytes + 100_000


def test_one_that_grows_into_the_reserve_is_given_up_before_it_does():
    """Goal: the log keeps its room, whatever size a checkpoint turns out to have. Method: the
    newest is small, the next has 4 MB, and room is for 2 MB of it.
    """
    rare = SnapshotConfig(min_changed_records_ratio=0.5, max_bytes_between=100 << 20)
    bench = LoneReplica(snapshot=rare).boot().lead()
    write(bench, 10)
    before = bench.replica.checkpoints.write_now()
    assert before is not None
    for n in range(200):
        assert bench.write(change(n, resources=200, size=20_000))
    room_for(bench, 2_000_000)
    with free_after_each_batch(bench) as free:
        bench.replica.checkpoints.write_now()
    assert len(free) > 4, "it was begun"
    assert LOG_RESERVE_BYTES <= min(free) < LOG_RESERVE_BYTES + 600_000
    assert parts(bench) == []
    assert bench.fs.free_bytes(bench.replica.stores.directory) == LOG_RESERVE_BYTES + 2_000_000
    assert bench.replica.node.snapshots[-1] == before
    (event,) = failed(bench)
    assert event.retry_ms == RETRY_MIN_MS
    assert "in reserve" in event.cause
    assert not bench.failures
    room_for(bench, 6_000_000)
    bench.replica.checkpoints.write_now()
    assert bench.replica.node.snapshots[-1].offset > before.offset


def test_what_the_log_writes_meanwhile_counts_as_well():
    """Goal: two that grow on one disk do not fill it. Method: others take what was free at the
    beginning while a checkpoint with room enough for itself is written.
    """
    rare = SnapshotConfig(min_changed_records_ratio=0.5, max_bytes_between=100 << 20)
    bench = LoneReplica(snapshot=rare).boot().lead()
    for n in range(100):
        assert bench.write(change(n, resources=100, size=20_000))
    before = bench.replica.node.snapshots
    room_for(bench, 4_000_000)
    log = bench.fs.open(bench.replica.stores.directory / "beside", create=True, writable=True)
    append = PartFile.append

    def beside(part: PartFile, data: bytes) -> None:
        append(part, data)
        if not log.size():
            log.append(bytes(3_000_000))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PartFile, "append", beside)
        bench.replica.checkpoints.write_now()
    assert len(failed(bench)) == 1
    assert parts(bench) == []
    assert bench.replica.node.snapshots == before


def nearly_full(*, segment_bytes: int, free_bytes: int = 300_000) -> tuple[LoneReplica, int]:
    """Return a leader with that much free space, and its log size without a checkpoint."""
    rare = SnapshotConfig(min_changed_records_ratio=0.5, max_bytes_between=100 << 20)
    log = LogConfig(segment_bytes=segment_bytes)
    bench = LoneReplica(snapshot=rare, log=log).boot().lead()
    write(bench, 10)
    assert bench.replica.checkpoints.write_now()
    for n in range(60):
        assert bench.write(change(n, resources=10, size=10_000))
    bench.advance(1_000_000)
    bench.fs.faults = Faults(capacity_bytes=bench.fs.used_bytes() + free_bytes)
    return bench, bench.replica.stores.log.size_bytes


def test_a_nearly_full_disk_gets_room_from_a_small_checkpoint():
    """Goal: a log is trimmed when space is short, although the whole reserve is not free.
    Method: a checkpoint of 0.1 MB replaces 0.5 MB of segments, and 0.3 MB are free.
    """
    bench, log_bytes = nearly_full(segment_bytes=50_000)
    with free_after_each_batch(bench) as free:
        assert bench.replica.checkpoints.write_now()
    assert not failed(bench)
    assert min(free) >= 150_000, "half of the rest is the log's"
    for _ in range(20):
        bench.advance(100_000)
    assert bench.replica.stores.log.size_bytes < log_bytes / 4
    assert bench.fs.free_bytes(bench.replica.stores.directory) > 600_000
    write(bench, 10)


def test_a_nearly_full_disk_pays_for_no_checkpoint_that_gives_nothing_back():
    """Goal: the last bytes are the log's. Method: all of it lies in one segment, which stays."""
    bench, _ = nearly_full(segment_bytes=1 << 30)
    assert bench.replica.checkpoints.write_now() is None
    assert "bytes free" in failed(bench)[0].cause


def test_a_nearly_full_disk_pays_for_one_checkpoint_with_the_same_segments(
    monkeypatch: pytest.MonkeyPatch,
):
    """Goal: half of the rest stays the log's, while a live replica that lags keeps what may go.
    Method: nothing is trimmed, and after every small change another checkpoint is asked for; then
    more segments than a checkpoint has fill, and one more is paid for with these.
    """
    monkeypatch.setattr(trimming, "trim_target", lambda *_: None)
    bench, log_bytes = nearly_full(segment_bytes=50_000, free_bytes=900_000)
    assert bench.replica.checkpoints.write_now()
    for n in range(8):
        assert bench.write(change(n))
        bench.advance(RETRY_MAX_MS)
        assert bench.replica.checkpoints.write_now() is None
    assert "bytes free" in failed(bench)[0].cause
    assert bench.replica.stores.log.size_bytes >= log_bytes, "nothing went"
    directory = bench.replica.stores.directory
    assert (bench.fs.free_bytes(directory) or 0) > 700_000
    bench.fs.faults = Faults()
    for n in range(30):
        assert bench.write(change(n, resources=10, size=10_000))
    bench.fs.faults = Faults(capacity_bytes=bench.fs.used_bytes() + 300_000)
    assert bench.replica.checkpoints.write_now()


def test_a_nearly_full_disk_keeps_half_of_the_rest_for_the_log():
    """Goal: whatever size a checkpoint turns out to have. Method: the newest is small, the next
    has 0.2 MB.
    """
    bench, _ = nearly_full(segment_bytes=50_000)
    bench.fs.faults = Faults()
    for n in range(20):
        assert bench.write(change(n, resources=20, size=10_000))
    before = bench.replica.node.snapshots
    bench.fs.faults = Faults(capacity_bytes=bench.fs.used_bytes() + 300_000)
    with free_after_each_batch(bench) as free:
        bench.replica.checkpoints.write_now()
    assert free, "it was begun"
    assert min(free) >= 150_000
    assert bench.replica.node.snapshots == before
    assert "in reserve" in failed(bench)[0].cause

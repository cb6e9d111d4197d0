"""A checkpoint that finds no space is told, waits, and leaves the log what it needs."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from metrics.families import Families
from metrics.observer import Observer
from quorate.logs import render
from quorate.replica.checkpoint_space import LOG_RESERVE_BYTES, RETRY_MAX_MS, RETRY_MIN_MS
from quorate.sim.memory_filesystem import Faults
from quorum.core.events import CheckpointFailed
from quorum.core.notices import SnapshotRemoved
from quorum.errors import DiskFullError
from snapshot.config import SnapshotConfig
from snapshot.writer import PartFile
from statemachine.commands import ConfigChange, IncrementalAlterConfigs, ResourceType
from tests.support.lone_replica import LoneReplica

SMALL = SnapshotConfig(min_changed_records_ratio=0.5, max_bytes_between=2_000)


def change(number: int) -> IncrementalAlterConfigs:
    """A command that changes one of ten resources."""
    value = ConfigChange("match", value=f"a=value-{number}")
    return IncrementalAlterConfigs(int(ResourceType.CLIENT_METRICS), str(number % 10), (value,))


def write(bench: LoneReplica, count: int) -> None:
    """So many acknowledged changes, without moving time."""
    for n in range(count):
        assert bench.write(change(n)), "answered"


def failed(bench: LoneReplica) -> list[CheckpointFailed]:
    """What was said of checkpoints that found no space."""
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


def test_a_checkpoint_without_space_is_told_with_its_cause(monkeypatch):
    """Goal: whoever runs the node learns of it. Method: part files find no space."""
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


def test_it_is_not_tried_again_while_time_stands_still(monkeypatch):
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
    """Goal: nobody has to write for it. Method: room again, and time moves by the pause."""
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
    """Goal: the log goes on. Method: less is free than the checkpoint and the log's reserve."""
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
        bench.replica.notice(SnapshotRemoved(snapshot_id))
    assert bench.replica.checkpoints.is_missing
    for _ in range(40):
        bench.advance(500)
    assert [event.retry_ms for event in failed(bench)] == [1_000, 2_000, 4_000, 8_000, 16_000]
    assert len(tries) == 5

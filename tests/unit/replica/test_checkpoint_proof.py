"""A node verifies a checkpoint that is requested from its beginning a second time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from quorate.replica.checkpoint_proof import PROVE_EVERY_MS
from snapshot.reader import CheckpointReader
from tests.support.lone_replica import LoneReplica
from tests.unit.replica.test_checkpoint_missing import change, trimmed


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[CheckpointReader]:
    """Every file that was read and proven as a whole."""
    seen: list[CheckpointReader] = []
    batches = CheckpointReader.batches

    def noted(reader: CheckpointReader) -> Iterator[bytes]:
        seen.append(reader)
        return batches(reader)

    monkeypatch.setattr(CheckpointReader, "batches", noted)
    return seen


def begin(bench: LoneReplica) -> None:
    """Serve the first chunk of the newest checkpoint."""
    snapshot_id = bench.replica.driver.node.snapshots[-1]
    bench.stores.snapshots.read_chunk(snapshot_id, 0, 100)


def test_a_intact_file_is_read_once_a_minute_however_many_ask(
    readings: list[CheckpointReader],
) -> None:
    bench = trimmed()
    readings.clear()
    begin(bench)
    assert not readings, "nobody has complained"
    for _ in range(20):
        begin(bench)
    assert len(readings) == 1
    bench.clock.time_ms += PROVE_EVERY_MS
    begin(bench)
    begin(bench)
    assert len(readings) == 2


def test_a_damaged_file_is_set_aside_and_replaced(readings: list[CheckpointReader]) -> None:
    bench = trimmed()
    damaged = bench.replica.driver.node.snapshots[-1]
    path = bench.stores.snapshots.path(damaged)
    bench.fs.flip_bit(path, len(bench.fs.read_bytes(path)) // 2)
    begin(bench)
    begin(bench)
    assert readings
    assert [each.snapshot_id for each in bench.stores.snapshots.quarantined] == [damaged]
    assert not bench.replica.checkpoints.is_missing
    newest = bench.replica.driver.node.snapshots[-1]
    assert bench.stores.snapshots.verify(newest)


def test_a_file_that_is_gone_is_no_damage() -> None:
    """Goal: a deletion meanwhile is no error. Method: delete between the chunk and the check."""
    bench = trimmed()
    begin(bench)
    store = bench.stores.snapshots
    bench.fs.unlink(store.path(bench.replica.driver.node.snapshots[-1]))
    begin(bench)
    assert not store.quarantined


@pytest.mark.parametrize("count", [2, 20])
def test_alternating_requests_do_not_cause_more_reads(
    readings: list[CheckpointReader], count: int
) -> None:
    """Goal: no peer can keep a node reading. Method: some files, begun by turns."""
    bench = trimmed()
    for number in range(1, count):
        # What is being served is kept although a newer one is there.
        begin(bench)
        bench.write(change(number))
        assert bench.replica.checkpoints.write_now()
        bench.persist()
    ids = bench.stores.snapshots.list()
    assert len(ids) == count
    readings.clear()
    bench.stores.snapshots.read_chunk(ids[-1], 0, 100)
    assert not readings, "the newest has not been served before"
    for _ in range(10):
        for snapshot_id in ids:
            bench.stores.snapshots.read_chunk(snapshot_id, 0, 100)
            bench.stores.snapshots.read_chunk(snapshot_id, 0, 100)
    assert len(readings) == count


def test_a_reading_under_way_ends_when_the_node_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: a stop leaves no reader behind. Method: stop at the second batch."""
    bench = trimmed()
    batches = CheckpointReader.batches
    read: list[bytes] = []

    def counted(reader: CheckpointReader) -> Iterator[bytes]:
        for batch in batches(reader):
            read.append(batch)
            if len(read) == 2:
                assert bench.replica.checkpoints.stop_reading() is None
            yield batch

    whole = len(
        list(bench.stores.snapshots.reader(bench.replica.driver.node.snapshots[-1]).batches())
    )
    monkeypatch.setattr(CheckpointReader, "batches", counted)
    begin(bench)
    begin(bench)
    assert len(read) == 2 < whole
    last = bench.replica.checkpoints.stop_reading()
    assert last is not None
    assert last.done()
    bench.clock.time_ms += PROVE_EVERY_MS
    begin(bench)
    assert len(read) == 2, "none is begun any more"

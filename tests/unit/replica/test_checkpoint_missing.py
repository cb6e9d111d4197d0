"""A trimmed log without an available checkpoint gets another one, and only one."""

from __future__ import annotations

from quorate.replica.checkpoints import REPLACE_EVERY_MS
from quorum.core.contract.local_events import SnapshotRemoved
from snapshot.config import SnapshotConfig
from statemachine.commands import ConfigChange, IncrementalAlterConfigs, ResourceType
from tests.support.lone_replica import LoneReplica

SMALL = SnapshotConfig(min_changed_records_ratio=0.5, max_bytes_between=2_000)


def change(number: int) -> IncrementalAlterConfigs:
    """A command that changes one of ten resources."""
    value = ConfigChange("match", value=f"a=value-{number}")
    return IncrementalAlterConfigs(int(ResourceType.CLIENT_METRICS), str(number % 10), (value,))


def trimmed() -> LoneReplica:
    """Return a leader whose log starts at a checkpoint and has later records."""
    bench = LoneReplica(snapshot=SMALL).boot().lead()
    for n in range(120):
        bench.write(change(n))
    bench.advance(10_000)
    assert bench.replica.driver.node.log_start.offset
    return bench


def withdraw(bench: LoneReplica) -> None:
    """What follows a chunk that could not be read."""
    for snapshot_id in bench.replica.driver.node.snapshots:
        bench.replica.on_local_event(SnapshotRemoved(snapshot_id))


def test_a_checkpoint_that_cannot_be_read_is_replaced_without_a_further_write() -> None:
    """Goal: a replica below the log start can catch up. Method: withdraw all checkpoints, twice.

    The second time nothing was written since, so that the new file has the name of the old one.
    """
    bench = trimmed()
    node = bench.replica.driver.node
    for _ in range(2):
        withdraw(bench)
        bench.advance(REPLACE_EVERY_MS)
        bench.replica.tick()
        assert node.snapshots
        assert node.snapshots[-1].offset >= node.log_start.offset
        assert not bench.replica.checkpoints.is_missing


def test_a_missing_checkpoint_is_written_at_most_once_a_second() -> None:
    """Goal: no busy loop on a disk that takes none. Method: it is withdrawn again at once."""
    bench = trimmed()
    withdraw(bench)
    assert not bench.replica.checkpoints.is_missing, "the last one is old"
    withdraw(bench)
    assert bench.replica.checkpoints.is_missing
    bench.advance(REPLACE_EVERY_MS - 1)
    bench.replica.tick()
    assert bench.replica.checkpoints.is_missing
    bench.advance(1)
    bench.replica.tick()
    assert not bench.replica.checkpoints.is_missing

"""Opening a node's directory, and what may come of it when its disk was made to fail."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.replica.boot import Stores, open_stores
from quorate.sim.clocks import DriftingClock
from quorate.sim.harmed_files import DATA_DIR
from quorate.sim.invariants.violation import Violation
from quorate.sim.memory_filesystem import PowerLost
from quorate.sim.node_disk import NodeDisk
from quorate.sim.surroundings import Surroundings
from quorum.errors import DiskFullError, QuorateError, StorageError
from quorum.types import NodeId

RESTART_US = 50_000
"""How long a service manager waits before it starts a process again."""
_REPAIR_US = 100_000
"""How long it takes until somebody has put a refused file back."""


@dataclass(frozen=True, slots=True)
class NotStarted:
    """A process ended before it ran."""

    why: str
    again_us: int
    """When the next attempt is made, from now."""


def open_directory(
    cluster: Surroundings, node_id: NodeId, disk: NodeDisk, clock: DriftingClock
) -> Stores | NotStarted:
    """Open the directory as a server does.

    Raises:
        Violation: A sound directory did not open, or a rotten file was believed or changed.
    """
    disk.opening()
    try:
        stores = open_stores(
            disk.fs,
            DATA_DIR,
            node_id=node_id,
            log_config=cluster.settings.log,
            snapshot_config=cluster.settings.snapshot,
            clock=clock,
        )
    except PowerLost:
        return NotStarted("power", RESTART_US)
    except QuorateError as error:
        failed = NotStarted(f"disk failed: {type(error).__name__}", RESTART_US)
        if disk.is_suspect and type(error) in (StorageError, DiskFullError):
            # It came to no judgement of its files.
            return failed
        if disk.files.may_refuse:
            cluster.counts.refused_starts += 1
            disk.files.put_back()
            return NotStarted(f"refused: {type(error).__name__}", _REPAIR_US)
        if disk.is_suspect:
            return failed
        raise Violation(
            "no-crash", "a sound directory did not open", node=node_id, error=repr(error)
        ) from error
    if disk.files.may_refuse:
        disk.files.accepted(stores.identity, stores.state.election)
    return stores

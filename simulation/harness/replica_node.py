"""A whole replica whose disk, clock and network are controlled step by step.

The nodes of scenarios and of the replica's unit tests derive from it. The node of the simulator,
``Incarnation``, has a disk and a clock that run by themselves; it shares only the executor.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from quorate.formatting import FormatPlan, format_directory
from quorate.replica.boot import Stores, open_stores
from quorate.replica.host import ReplicaHost
from quorate.replica.replica import Replica, ReplicaConfig
from quorum.log.config import LogConfig
from quorum.log.election_store import ElectionFile
from quorum.log.layout import partition_directory
from quorum.runtime.ports import WriteGroup
from quorum.types import NodeId, Uuid, Voter
from simulation.harness.core_disk import BOOTSTRAPPED
from simulation.harness.executor import InlineExecutor
from simulation.memory_filesystem import MemoryFileSystem, PowerLost
from snapshot.config import SnapshotConfig

DATA_DIR = Path("/data")
DIRECTORY = partition_directory(DATA_DIR)


class HandClock:
    """``ports.Clock`` that moves only when set."""

    def __init__(self, now_ms: int) -> None:
        self.time_ms = now_ms
        self.wall_offset_ms = 0
        """How far the wall clock was set forward or back."""

    def now_ms(self) -> int:
        return self.time_ms

    def wall_ms(self) -> int:
        return self.time_ms + self.wall_offset_ms


class ReplicaNode(ReplicaHost):
    """A node across its process runs; ``replica`` and ``stores`` are None while it is down.

    What the replica submits waits in ``groups`` until ``complete``. Derived classes handle messages
    and events.
    """

    def __init__(self, node_id: NodeId, cluster_id: str, clock: HandClock) -> None:
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.clock = clock
        self.fs = MemoryFileSystem()
        self.executor = InlineExecutor()
        self.writer = self.network = self  # type: ignore[assignment]
        self.groups: deque[WriteGroup] = deque()
        self.replica: Replica | None = None
        self.stores: Stores | None = None

    def format_disk(
        self, directory_id: Uuid, voters: tuple[Voter, ...], *, is_bootstrapped: bool
    ) -> None:
        """Make the data directory; ``is_bootstrapped``: as after the voters' first start."""
        plan = FormatPlan(DATA_DIR, self.cluster_id, self.node_id, directory_id, voters)
        format_directory(self.fs, plan)
        if is_bootstrapped:
            ElectionFile(self.fs, DIRECTORY).save(BOOTSTRAPPED)

    def open(self, log: LogConfig, snapshot: SnapshotConfig, **release: Any) -> Stores:
        """Open the directory; ``release`` holds further arguments of ``open_stores``.

        Raises:
            QuorateError: The directory cannot be used.
        """
        self.stores = open_stores(
            self.fs,
            DATA_DIR,
            node_id=self.node_id,
            log_config=log,
            snapshot_config=snapshot,
            clock=self.clock,
            **release,
        )
        return self.stores

    def run(self, stores: Stores, config: ReplicaConfig) -> Replica:
        """Create the replica; it takes its first role with ``start``."""
        self.replica = Replica(stores, self, config)
        return self.replica

    def complete(self, *groups: WriteGroup) -> None:
        """Let the disk complete these groups in one pass, and report it.

        Raises:
            PowerLost: The disk was set to stop in the middle.
            StorageError: The disk failed; the node must stop.
        """
        replica, stores = self.replica, self.stores
        if replica is None or stores is None:
            raise PowerLost
        done = replica.persistence_of(stores).execute(groups)
        self.written(groups)
        replica.write_done(done)

    def written(self, groups: tuple[WriteGroup, ...]) -> None:
        """Note that the disk has completed ``groups``; the replica does not know yet."""

    # Ports that the replica needs.

    def submit(self, group: WriteGroup) -> None:
        self.groups.append(group)

    def set_peers(self, addresses: object, *, is_hint: bool = False) -> None:
        """Ignore addresses: every node is reachable under its number."""

    def to_driver(self, call: Callable[[], None]) -> None:
        call()

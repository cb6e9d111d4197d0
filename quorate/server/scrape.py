"""What one scrape of a server looks at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from quorate.controller.controller import Controller
from quorate.replica.replica import Replica
from quorate.server.metering import CommandMeter
from quorate.server.scrubber import Scrubber
from quorum.core.node.raft_node import RaftNode
from quorum.core.state.replica_progress import ReplicaView
from quorum.core.state.replica_table import TreeView
from quorum.fair_share import FairShare
from quorum.supervisor import Supervisor
from quorum.transport.counters import TransportCounters
from snapshot.generator import SnapshotFigures, snapshot_figures
from statemachine.image import MetadataImage


@dataclass(frozen=True)
class Scrape:
    """What one scrape looks at. What several metrics need is looked up once."""

    replica: Replica
    now_ms: int
    transport: TransportCounters
    supervisor: Supervisor
    scrubber: Scrubber
    quotas: Sequence[FairShare]
    """The places that callers share."""
    held_fetches_max: int
    busy_ratio: Callable[[], float | None]
    meter: CommandMeter

    @property
    def node(self) -> RaftNode:
        """The replica's core."""
        return self.replica.node

    @property
    def controller(self) -> Controller:
        """The replica's controller."""
        return self.replica.controller

    @property
    def image(self) -> MetadataImage:
        """The applied image."""
        return self.controller.image

    @cached_property
    def tree(self) -> TreeView:
        """The relays that this node fetches through, and the observers that fetch through it."""
        return self.node.tree()

    @cached_property
    def replicas(self) -> tuple[ReplicaView, ...]:
        """The other replicas that this leader knows: voters first, then by id. Elsewhere none."""
        return tuple(view for view in self.node.replicas() if view.key != self.node.me)

    @cached_property
    def checkpoints(self) -> SnapshotFigures:
        """Count and size of the checkpoints kept."""
        known = self.node.snapshots
        size = self.replica.stores.snapshots.size(known[-1]) if known else 0
        return snapshot_figures(known, size, self.node.high_watermark)

"""One node of a scenario: a production ``Replica`` whose disk and clock the script controls."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from quorate.controller.config import ControllerConfig
from quorate.features import SUPPORTED_VERSIONS
from quorate.replica.replica import Replica, ReplicaConfig
from quorum.config import QuorumConfig
from quorum.core.contract.events import Event, LogDiverged
from quorum.core.messages.message_types import Message
from quorum.core.state.upstream import NO_RELAYS, RelayPlan
from quorum.errors import LogQuarantinedError
from quorum.log.config import LogConfig
from quorum.runtime.ports import WriteGroup
from quorum.types import (
    NO_NODE,
    Endpoint,
    NodeId,
    ReplicaKey,
    SnapshotId,
    VersionRange,
    Voter,
)
from simulation.harness.replica_node import DIRECTORY, HandClock, ReplicaNode
from simulation.memory_filesystem import CrashMode, MemoryFileSystem
from simulation.older_release import decoder_without
from simulation.scenario.pinned import PinnedRandom
from simulation.scenario.tombstones import bury
from snapshot.config import SnapshotConfig
from snapshot.writer import CheckpointInfo
from statemachine.records import METADATA_VERSION

CLUSTER_ID = "c2NlbmFyaW8tY2x1c3Rlcg"
SERVER = -1000
"""Id of a bootstrap server that a script names: ``SERVER - n`` is the address of node n."""


def key_of(node_id: NodeId, disk: int = 0) -> ReplicaKey:
    """Return a replica key. Its directory id ends with the disk number and the node id."""
    return ReplicaKey(node_id, b"\1" + bytes(13) + bytes([disk, node_id]))


def voter_of(node_id: NodeId, host: str = "") -> Voter:
    """Return a node's entry in the voter set."""
    return Voter(key_of(node_id), (Endpoint("CONTROLLER", host or f"node{node_id}", 9093),))


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings that all nodes of a scenario share."""

    quorum: QuorumConfig
    log: LogConfig
    snapshot: SnapshotConfig
    voters: tuple[NodeId, ...]
    relays: dict[NodeId, RelayPlan] = field(default_factory=dict)
    """Whether each node serves as a relay, and which relays it fetches from."""
    servers: dict[NodeId, tuple[NodeId, ...]] = field(default_factory=dict)
    """The nodes whose addresses a node has as bootstrap servers, if not the voters'."""
    is_bootstrapped: bool = True
    """Whether the initial disks of the voters belong to a bootstrapped quorum
    (``quorum.core.election.bootstrapping``)."""
    bootstrap_without: tuple[NodeId, ...] = ()
    metadata_versions: dict[NodeId, int] = field(default_factory=dict)
    """The highest metadata.version that each node of an older release supports."""
    lacks: dict[NodeId, tuple[int, ...]] = field(default_factory=dict)
    """The record types that each node of an older release lacks, by API key."""
    tombstones: int = 0
    """Number of removed voters in the bootstrap checkpoint."""


@dataclass(slots=True)
class Hooks:
    """Callbacks from a node to its world, each with the node id first."""

    on_sent: Callable[[NodeId, NodeId, Message], None]
    on_event: Callable[[NodeId, Event], None]
    on_opened: Callable[[Replica], None]
    on_submitted: Callable[[NodeId, WriteGroup], None]
    on_written: Callable[[NodeId, WriteGroup], None]
    on_checkpoint: Callable[[NodeId, SnapshotId], None]
    on_stopped: Callable[[NodeId, str], None]
    on_fault: Callable[[NodeId, str], None]


class Member(ReplicaNode):
    """A node of a scenario; it reports to its world through ``Hooks``."""

    def __init__(
        self, node_id: NodeId, settings: Settings, hooks: Hooks, share: float, clock: HandClock
    ) -> None:
        super().__init__(node_id, CLUSTER_ID, clock)
        self.settings = settings
        self.hooks = hooks
        self.share = share
        self.backup: MemoryFileSystem | None = None
        self.deadline_ms: int | None = None
        self.process_runs = 0
        self.host = ""
        """Its host name; empty for the one it was formatted with."""
        self.disk = 0
        """How often its disk was replaced by an empty one."""
        self.is_quarantined = False
        """Whether its last process run ended because its log was quarantined."""
        self.diverged: list[LogDiverged] = []

    def format(self) -> None:
        """Format the data directory; a voter's contains the initial voter set."""
        is_first = self.node_id in self.settings.voters and not self.disk
        voters = tuple(voter_of(each) for each in self.settings.voters) if is_first else ()
        is_bootstrapped = bool(voters) and self.settings.is_bootstrapped
        directory_id = key_of(self.node_id, self.disk).directory_id
        self.format_disk(directory_id, voters, is_bootstrapped=is_bootstrapped)
        if voters and self.settings.tombstones:
            bury(self.fs, DIRECTORY, list(voters), self.settings.tombstones)

    def wipe(self) -> None:
        """Replace the disk by an empty one, formatted by the same command."""
        self.fs = MemoryFileSystem()
        self.settings = replace(self.settings, is_bootstrapped=False)
        self.format()

    # Ports of the replica.

    def submit(self, group: WriteGroup) -> None:
        """The replica's ``Writer``: nothing is written before ``persist``."""
        super().submit(group)
        self.hooks.on_submitted(self.node_id, group)

    def send(self, to: NodeId, message: Message) -> None:
        """The replica's ``Network``. Observers know the voters as bootstrap servers -2, -3 ..."""
        self.hooks.on_sent(self.node_id, self._named(to), message)

    def _named(self, to: NodeId) -> NodeId:
        if to <= SERVER:
            return SERVER - to
        return self.settings.voters[-to - 2] if to < NO_NODE else to

    def on_deadline(self, deadline_ms: int) -> None:
        self.deadline_ms = deadline_ms

    def on_checkpoint(self, info: CheckpointInfo) -> None:
        self.hooks.on_checkpoint(self.node_id, info.snapshot_id)

    def on_event(self, event: Event) -> None:
        if isinstance(event, LogDiverged):
            self.diverged.append(event)
        self.hooks.on_event(self.node_id, event)

    def on_failure(self, error: BaseException) -> None:
        self.is_quarantined = isinstance(error, LogQuarantinedError)
        self.hooks.on_stopped(self.node_id, str(error))

    def on_fault(self, message: str) -> None:
        self.hooks.on_fault(self.node_id, message)

    # Process start and end.

    def start(self) -> None:
        """Open the directory and take the first role.

        Raises:
            QuorateError: The directory cannot be used.
        """
        self.process_runs += 1
        self.deadline_ms = None
        self.rng = PinnedRandom(self.node_id * 1000 + self.process_runs, self.share)
        stores = self.open(
            self.settings.log,
            self.settings.snapshot,
            bootstrap_without=self.settings.bootstrap_without,
            decode=decoder_without(self.settings.lacks.get(self.node_id, ())),
        )
        voters = self.settings.voters
        is_first = self.node_id in voters and not self.disk
        servers = (
            ()
            if is_first
            else tuple(-2 - n for n, each in enumerate(voters) if each != self.node_id)
        )
        if self.node_id in self.settings.servers:
            servers = tuple(SERVER - each for each in self.settings.servers[self.node_id])
        config = ReplicaConfig(
            self.settings.quorum,
            ControllerConfig(CLUSTER_ID, idle_interval_ms=0, kraft_version=stores.kraft_version),
            self.settings.snapshot,
            bootstrap=servers,
            relays=self.settings.relays.get(self.node_id, NO_RELAYS),
            endpoints=voter_of(self.node_id, self.host).endpoints,
            supported=self._supported(),
        )
        replica = self.run(stores, config)
        self.hooks.on_opened(replica)
        replica.start()

    def _supported(self) -> tuple[VersionRange, ...]:
        highest = self.settings.metadata_versions.get(self.node_id)
        return tuple(
            replace(each, highest=highest)
            if highest is not None and each.name == METADATA_VERSION
            else each
            for each in SUPPORTED_VERSIONS
        )

    def crash(self, mode: CrashMode, rng: random.Random) -> None:
        """Stop without notifying any peer. ``mode`` decides what is left of unsynced bytes."""
        self.replica = self.stores = None
        self.groups.clear()
        self.deadline_ms = None
        self.fs.crash(rng, mode)

    def written(self, groups: tuple[WriteGroup, ...]) -> None:
        for group in groups:
            self.hooks.on_written(self.node_id, group)

    def tick(self) -> None:
        """Let the replica run its due timers; harmless before its deadline."""
        if self.replica is not None:
            self.deadline_ms = None
            self.replica.tick()

"""``Replica``: one node of the quorum, put together and without a clock, thread or socket.

The server puts real ones around it, the simulator simulated ones; everything between is the
same code. The shell's duties: ``receive`` for messages, ``write_done`` for completions, ``tick``
at the deadline, and ``turn`` once per round of its loop in which commands were submitted.

Invariant: all methods are called on one thread.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.controller.config import ControllerConfig
from quorate.controller.controller import Controller
from quorate.controller.publishing import Published
from quorate.features import SUPPORTED_VERSIONS
from quorate.replica.boot import Stores
from quorate.replica.checkpoints import CheckpointManager
from quorate.replica.host import ReplicaHost
from quorate.replica.log_manager import LogManager
from quorum.config import QuorumConfig
from quorum.core.contract.local_events import (
    FeatureLevels,
    ListenerEndpoints,
    LocalEvent,
    ReplayStopped,
)
from quorum.core.messages.message_types import Received
from quorum.core.node.raft_node import RaftNode
from quorum.core.state.upstream import NO_RELAYS, RelayPlan
from quorum.runtime.driver import Driver, OperatorRequest
from quorum.runtime.notifications import OnSettled
from quorum.runtime.persistence import Persistence
from quorum.runtime.ports import WriteDone
from quorum.types import Endpoint, NodeId, VersionRange
from snapshot.config import SnapshotConfig
from snapshot.generator import CheckpointTrigger
from statemachine.codec import decode_record


@dataclass(frozen=True, slots=True)
class ReplicaConfig:
    """The settings of one replica; its stores and its host are separate arguments."""

    quorum: QuorumConfig
    controller: ControllerConfig
    snapshot: SnapshotConfig
    bootstrap: tuple[NodeId, ...] = ()
    """Servers to ask for the leader before a voter is known."""
    relays: RelayPlan = NO_RELAYS
    endpoints: tuple[Endpoint, ...] = ()
    """The addresses of this replica."""
    supported: tuple[VersionRange, ...] = SUPPORTED_VERSIONS
    """The feature versions that this release supports."""


class Replica:
    """Stores, core, driver, controller and checkpoints of one node.

    Life-cycle: ``open_stores``, construct, ``start``, entry points, ``close``.
    """

    def __init__(self, stores: Stores, host: ReplicaHost, config: ReplicaConfig) -> None:
        """Put everything together; nothing runs before ``start``."""
        self.stores = stores
        self.key = stores.key
        self.config = config
        self._host = host
        self.node = RaftNode(
            config=config.quorum,
            cluster_id=stores.identity.cluster_id,
            me=stores.key,
            rng=host.rng,
            bootstrap=config.bootstrap,
            relays=config.relays,
        )
        self.controller = self._make_controller()
        self.log_manager = LogManager(host, stores, self.on_local_event)
        self.driver = Driver(
            self.node,
            host,
            log=stores.log,
            snapshots=stores.snapshots,
            listener=host.around_listener(self.controller),
            on_verify=self.log_manager.verify,
            process_pause_ms=config.quorum.process_pause_ms,
        )
        self.controller.attach(self.driver)
        self.checkpoints = CheckpointManager(
            self.controller,
            self.driver,
            stores,
            host,
            CheckpointTrigger.from_config(config.snapshot),
        )
        self._has_published = self._is_prepared = self._is_started = False
        self.controller.subscribe(self._published)

    @staticmethod
    def persistence_of(stores: Stores) -> Persistence:
        """The blocking side, for the writer to run."""
        return Persistence(stores.log, stores.election, stores.snapshots)

    # ------------------------------------------------------------------ entry points

    def replay(self) -> bool:
        """Apply some of what is known to be committed; return whether more is left.

        To be called before ``start``, if at all, once per turn of the event loop.
        """
        stores = self.stores
        if not self._is_prepared:
            self._is_prepared = True
            self.driver.prepare(
                stores.state,
                delivered_end=stores.machine.image.provenance.end_offset,
                last_timestamp=stores.last_timestamp,
            )
        return self.driver.replay(stores.state)

    def start(self) -> None:
        """Apply what is left of what is known to be committed, then take the first role."""
        self.replay()
        self.driver.start(self.stores.state)
        self._is_started = True
        if self.config.endpoints:
            self.driver.on_local_event(ListenerEndpoints(self.config.endpoints))
        self._report_levels()
        if self.controller.fault is not None:
            self._report_replay(str(self.controller.fault))
        self.turn()

    def receive(self, sender: NodeId, message: Received) -> None:
        """Take a message from a peer."""
        self.driver.receive(sender, message)
        self.turn()

    def write_done(self, done: WriteDone) -> None:
        """Take a completion of the writer."""
        self.driver.write_done(done)
        self.turn()

    def deliver(self) -> None:
        """Apply what was deferred until messages had left (``on_delivery_due``)."""
        self.driver.deliver()
        self.turn()

    def on_local_event(self, event: LocalEvent) -> None:
        """Pass a local event or an operator's request to the core."""
        self.driver.on_local_event(event)
        self.turn()

    def ask(self, request: OperatorRequest, on_settled: OnSettled) -> None:
        """Pass an operator's request to the core; it is answered once."""
        self.driver.ask(request, on_settled)
        self.turn()

    def tick(self) -> None:
        """The deadline has come, or earlier."""
        self.driver.tick()
        self.controller.note_time(self.driver.now_ms)
        self.turn()

    def turn(self) -> None:
        """Append what gathered, begin a due checkpoint, return the next deadline."""
        deadline_ms = self.controller.turn(self._host.clock)
        # What is committed may not be in this replica's own file yet, and the header of a
        # checkpoint holds the digest of that file; so the look waits for the next completion.
        if self._has_published and self.node.flushed_end_offset >= self.stores.machine.end_offset:
            self._has_published = False
            self.checkpoints.consider()
        if self.checkpoints.space.failures or self.node.lacks_snapshot:
            self.checkpoints.poll()
        if deadline_ms is not None and deadline_ms < self.driver.armed_ms:
            self.driver.wake_by(deadline_ms)

    def close(self) -> None:
        """Release files. The writer must have been stopped before."""
        self.checkpoints.cancel()
        self.stores.log.close()
        self.stores.snapshots.close()

    # ------------------------------------------------------------------ inside

    def _published(self, published: Published) -> None:
        self._has_published = True
        # What is applied during the start is reported at its end: the core has no state yet.
        if self._is_started and published.after.features is not published.before.features:
            self._report_levels()
        self.driver.controls.applied(published.after.provenance.timestamp_ms)

    def _report_levels(self) -> None:
        levels = dict(self.controller.image.features.levels)
        self.driver.on_local_event(FeatureLevels(self.config.supported, levels))

    def _make_controller(self) -> Controller:
        stores, host = self.stores, self._host
        return Controller(
            self.config.controller,
            stores.machine,
            rng=host.rng,
            open_checkpoint=lambda snapshot_id: stores.snapshots.reader(snapshot_id).batches(),
            bootstrap=tuple(decode_record(value) for value in stores.report.bootstrap_values),
            on_fault=host.on_fault,
            on_replay=self._report_replay,
            on_group=host.on_group,
        )

    def _report_replay(self, stopped: str) -> None:
        if self._is_started:
            self.driver.on_local_event(ReplayStopped(stopped))

"""``Replica``: one node of the quorum, put together and without a clock, thread or socket.

The server puts real ones around it, the simulator simulated ones; everything between is the
same code. The shell's duties: ``receive`` for messages, ``write_done`` for completions, ``tick``
at the deadline, and ``turn`` once per round of its loop in which commands were submitted.

Invariant: all methods are called on one thread.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from concurrent.futures import Executor

from quorate.controller.config import ControllerConfig
from quorate.controller.controller import Controller
from quorate.controller.publishing import Published
from quorate.features import SUPPORTED_VERSIONS
from quorate.replica.boot import Stores
from quorate.replica.checkpoints import CheckpointManager, OnCheckpoint
from quorate.replica.log_manager import LogManager
from quorum.config import QuorumConfig
from quorum.core.contract.events import Event
from quorum.core.contract.local_events import (
    FeatureLevels,
    ListenerEndpoints,
    LocalEvent,
    ReplayStopped,
)
from quorum.core.messages.message_types import Message
from quorum.core.node.raft_node import RaftNode
from quorum.core.state.upstream import NO_RELAYS, RelayPlan
from quorum.ports import Clock, FileSystem
from quorum.runtime.driver import Driver
from quorum.runtime.operator_requests import OnSettled
from quorum.runtime.persistence import Persistence
from quorum.runtime.ports import Listener, Network, WriteDone, Writer
from quorum.types import Endpoint, NodeId, VersionRange
from snapshot.config import SnapshotConfig
from snapshot.generator import CheckpointTrigger
from statemachine.codec import decode_record


class Replica:
    """Stores, core, driver, controller and checkpoints of one node.

    ``around_listener`` may wrap the seam between driver and controller; ``on_group`` is told how
    many batches each appended group has.

    Life-cycle: ``open_stores``, construct, ``start``, entry points, ``close``. ``around_listener``
    and ``around_log`` may wrap the seams between driver and controller; ``supported`` is what this
    release can run with.
    """

    def __init__(  # noqa: PLR0913 - the composition of a node, by keyword
        self,
        stores: Stores,
        fs: FileSystem,
        *,
        quorum_config: QuorumConfig,
        controller_config: ControllerConfig,
        snapshot_config: SnapshotConfig,
        clock: Clock,
        rng: random.Random,
        writer: Writer,
        network: Network,
        executor: Executor,
        to_driver: Callable[[Callable[[], None]], None],
        on_event: Callable[[Event], None],
        on_deadline: Callable[[int | None], None],
        on_failure: Callable[[BaseException], None],
        on_fault: Callable[[str], None],
        bootstrap: Sequence[NodeId] = (),
        relays: RelayPlan = NO_RELAYS,
        endpoints: Sequence[Endpoint] = (),
        supported: Sequence[VersionRange] = SUPPORTED_VERSIONS,
        on_checkpoint: OnCheckpoint | None = None,
        on_delivery_due: Callable[[bool], None] | None = None,
        around_listener: Callable[[Listener], Listener] = lambda listener: listener,
        on_group: Callable[[int], None] = lambda batches: None,  # noqa: ARG005 - ignores it
    ) -> None:
        """Put everything together; nothing runs before ``start``."""
        self.stores = stores
        self.key = stores.key
        self._clock = clock
        self.endpoints = tuple(endpoints)
        self._on_deadline = on_deadline
        self.node = _core_of(stores, quorum_config, rng, bootstrap, relays)
        self.controller = self._make_controller(controller_config, rng, on_fault, on_group)
        self.driver = Driver(
            self.node,
            log=stores.log,
            snapshots=stores.snapshots,
            writer=writer,
            network=network,
            clock=clock,
            listener=around_listener(self.controller),
            on_event=on_event,
            on_deadline=on_deadline,
            on_delivery_due=on_delivery_due,
            on_verify=lambda request: self.log_manager.verify(request),
            on_quarantined=on_failure,
            process_pause_ms=quorum_config.process_pause_ms,
        )
        self.log_manager = LogManager(
            fs, stores.directory, stores.log, executor, self.on_local_event, to_driver, on_failure
        )
        self.controller.attach(self.driver)
        self.checkpoints = CheckpointManager(
            controller=self.controller,
            driver=self.driver,
            stores=stores,
            fs=fs,
            trigger=CheckpointTrigger.from_config(snapshot_config),
            executor=executor,
            clock=clock,
            to_driver=to_driver,
            on_failure=on_failure,
            on_event=on_event,
            on_checkpoint=on_checkpoint,
        )
        self._has_published = self._is_started = False
        self._supported = tuple(supported)
        self.controller.subscribe(self._published)

    @staticmethod
    def persistence_of(stores: Stores) -> Persistence:
        """The blocking side, for the writer to run."""
        return Persistence(stores.log, stores.election, stores.snapshots)

    # ------------------------------------------------------------------ entry points

    def start(self) -> None:
        """Apply what is known to be committed, then take the first role."""
        stores = self.stores
        self.driver.start(
            stores.state,
            delivered_end=stores.machine.image.provenance.end_offset,
            last_timestamp=stores.last_timestamp,
        )
        self._is_started = True
        if self.endpoints:
            self.driver.on_local_event(ListenerEndpoints(self.endpoints))
        self._report_levels()
        if self.controller.fault is not None:
            self._report_replay(str(self.controller.fault))
        self.turn()

    def receive(self, sender: NodeId, message: Message) -> None:
        """Take a message from a peer."""
        self.driver.receive(sender, message)
        self.turn()

    def write_done(self, done: WriteDone) -> None:
        """Take a completion of the writer."""
        self.driver.write_done(done)
        self.turn()

    def deliver(self) -> None:
        """Apply what was put off until messages had left (``on_delivery_due``)."""
        self.driver.deliver()
        self.turn()

    def on_local_event(self, fact: LocalEvent) -> None:
        """Tell the core a local fact or an operator's request."""
        self.driver.on_local_event(fact)
        self.turn()

    def ask(self, request: Callable[[int], LocalEvent], on_settled: OnSettled) -> None:
        """Make an operator's request of the core; answered once."""
        self.driver.ask(request, on_settled)
        self.turn()

    def tick(self) -> None:
        """The deadline has come, or earlier."""
        self.driver.tick()
        self.controller.tick(self._clock.now_ms(), self._clock.wall_ms())
        self.turn()

    def turn(self) -> None:
        """Append what gathered, consider a checkpoint, say when to come back."""
        if self.controller.is_flush_due:
            self.controller.flush(self._clock.now_ms(), self._clock.wall_ms())
        # What is committed may not be in this replica's own file yet, and the header of a
        # checkpoint holds the digest of that file; so the look waits for the next completion.
        if self._has_published and self.driver.flushed_end >= self.stores.machine.end_offset:
            self._has_published = False
            self.checkpoints.consider()
        self.checkpoints.retry()
        self.checkpoints.replace_missing()
        deadline = self.controller.next_deadline_ms()
        if deadline is not None:
            self._on_deadline(deadline)

    def close(self) -> None:
        """Release files. The writer must have been stopped before."""
        self.checkpoints.cancel()
        self.stores.log.close()
        self.stores.snapshots.close()

    # ------------------------------------------------------------------ inside

    def _published(self, told: Published) -> None:
        self._has_published = True
        # What is applied on the way up is told at its end: the core knows nothing yet.
        if self._is_started and told.after.features is not told.before.features:
            self._report_levels()
        self.driver.controls.applied(told.after.provenance.timestamp_ms)

    def _report_levels(self) -> None:
        levels = dict(self.controller.image.features.levels)
        self.driver.on_local_event(FeatureLevels(self._supported, levels))

    def _make_controller(
        self,
        config: ControllerConfig,
        rng: random.Random,
        on_fault: Callable[[str], None],
        on_group: Callable[[int], None],
    ) -> Controller:
        stores = self.stores
        return Controller(
            config,
            stores.machine,
            rng=rng,
            open_checkpoint=lambda snapshot_id: stores.snapshots.reader(snapshot_id).batches(),
            bootstrap=tuple(decode_record(value) for value in stores.report.bootstrap_values),
            on_fault=on_fault,
            on_replay=self._report_replay,
            on_group=on_group,
        )

    def _report_replay(self, stopped: str) -> None:
        if self._is_started:
            self.driver.on_local_event(ReplayStopped(stopped))


def _core_of(
    stores: Stores,
    config: QuorumConfig,
    rng: random.Random,
    bootstrap: Sequence[NodeId],
    relays: RelayPlan,
) -> RaftNode:
    return RaftNode(
        config=config,
        cluster_id=stores.identity.cluster_id,
        me=stores.key,
        rng=rng,
        bootstrap=bootstrap,
        relays=relays,
    )

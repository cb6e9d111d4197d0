"""One incarnation of a node: a process run with the production ``Replica``, from start to end."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from quorate.controller.config import ControllerConfig
from quorate.replica.boot import Stores
from quorate.replica.host import ReplicaHost
from quorate.replica.replica import Replica, ReplicaConfig
from quorate.replica.scrub import act_on, scrub, target_of
from quorum.core.contract.events import Event
from quorum.core.contract.local_events import LocalEvent, ShutDown
from quorum.core.messages.message_types import Message, Received
from quorum.errors import DiskFullError, LogQuarantinedError, StorageError
from quorum.runtime.ports import WriteGroup
from quorum.types import NodeId
from simulation.clocks import DriftingClock
from simulation.disk import WriteQueue
from simulation.environment import Environment, endpoints_of
from simulation.harness.executor import InlineExecutor
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.violation import Violation
from simulation.memory_filesystem import PowerLost
from simulation.node_disk import NodeDisk
from simulation.reported_events import count_event
from simulation.seeded_random import SeededRandom
from simulation.trace import describe
from snapshot.writer import CheckpointInfo

_LOOK_US = 20_000
"""Interval at which a hung disk is checked for recovery."""


class Links(Protocol):
    """Carries a node's messages."""

    def send(self, sender: NodeId, to: NodeId, message: Message) -> None:
        """Send a message, which may get lost."""

    def set_hints(self, sender: NodeId, addresses: Mapping[NodeId, str]) -> None:
        """Set the addresses at which a node looks for others from now on."""

    def process_ended(self, node_id: NodeId) -> None:
        """Note that a node's process died on a machine that still runs."""


class Machine(Protocol):
    """The node that this process runs on."""

    id: NodeId
    disk: NodeDisk
    clock: DriftingClock
    run_observer: RunObserver
    network: Links
    paused_until_us: int
    lacks: frozenset[int]

    def stop_for(self, reason: str) -> None:
        """Note that the process ended itself, or that its machine stopped."""


class Incarnation(ReplicaHost):
    """After every entry point the observer checks the replica; after ``end`` calls do nothing."""

    def __init__(
        self,
        member: Machine,
        cluster: Environment,
        stores: Stores,
        rng_seed: int,
        *,
        uses_native_codec: bool,
    ) -> None:
        self.is_over = False
        self.is_stopping = False
        """Whether it is shutting down: it campaigns no more."""
        self._member = member
        self._id = member.id
        self._cluster = cluster
        self._run_observer = member.run_observer
        self._network = member.network
        self.clock = member.clock
        self.fs = member.disk.fs
        self.rng = SeededRandom(rng_seed)
        self.executor = InlineExecutor()
        self.network = self
        self._disk = member.disk
        self._armed_us: int | None = None
        self._pass_due_us: int | None = None
        """When the running pass of the disk ends, unless the disk hangs; None without one."""
        self._failure: BaseException | None = None
        self.writer = WriteQueue(
            self._begin_pass,
            lambda group: member.run_observer.submitted(member.id, group),
            cluster.plan.disk_groups,
        )
        self._persistence = Replica.persistence_of(stores)
        # A voter's own records name its peers; one that has lost them gets them from its operator.
        is_voter = member.id in cluster.voter_ids and not member.disk.is_wiped
        knows_peers = is_voter and bool(stores.state.voters)
        controller = ControllerConfig(
            cluster.cluster_id,
            uses_native_codec=uses_native_codec,
            idle_interval_ms=cluster.settings.idle_ms,
            kraft_version=1,
            session_timeout_ms=400,
            departure_partitions_max=1,
        )
        config = ReplicaConfig(
            cluster.settings.quorum,
            controller,
            cluster.settings.snapshot,
            bootstrap=() if knows_peers else cluster.servers_of(member.id),
            relays=cluster.relays.of(member.id),
            endpoints=endpoints_of(member.id),
        )
        self._gather_us = cluster.plan.gather_us
        self.defers_delivery = self._gather_us > 0
        # One batch in each turn, so that everything else comes in between.
        self.delivery_turn_bytes = 1
        self.replica = Replica(stores, self, config)

    def end(self, rng: random.Random | None = None) -> bool:
        """End the process; with ``rng``, apply part of a running disk pass.

        Returns whether a pass was running or groups were waiting.
        """
        self.is_over = True
        if rng is None:
            return True
        return self.writer.cut_off(self._disk.fs, self._persistence, rng)

    # ------------------------------------------------------------------ entry points

    def enter(self, call: Callable[..., object], *arguments: object) -> None:
        """Call into the replica, then run the checks whatever happens."""
        member = self._member
        try:
            call(*arguments)
        except PowerLost:
            if not self.is_over:
                self._run_observer.cut_short(self._id)
            member.stop_for("power")
            return
        except DiskFullError as error:
            member.stop_for(f"full: {error}" if self._failure is None else "full")
            return
        except StorageError as error:
            self._storage_failed(error)
            return
        except Violation:
            raise
        except BaseException as error:
            self._run_observer.stepped(self._id)
            raise Violation(
                "no-crash", "the replica raised", node=self._id, error=repr(error)
            ) from error
        if not self.is_over:
            self._run_observer.stepped(self._id)
        if self._failure is not None:
            self._storage_failed(self._failure)

    def _storage_failed(self, error: BaseException) -> None:
        run_observer = self._run_observer
        has_rotted = (
            run_observer.is_chain_damaged or run_observer.nodes[self._id].damaged_at is not None
        )
        # A running node finds corrupt records when it reads them, to apply or to serve them.
        is_expected = self._disk.is_suspect or self._disk.files.is_latent
        if isinstance(error, LogQuarantinedError):
            is_expected = has_rotted
        if not is_expected or not isinstance(error, StorageError):
            raise Violation(
                "no-crash",
                "storage failed although the disk was intact",
                node=self._id,
                error=repr(error),
            ) from error
        self._member.stop_for(f"disk failed: {type(error).__name__}")

    def receive(self, sender: NodeId, message: Received) -> None:
        """A message has arrived."""
        cluster = self._cluster
        if self.is_over or (
            cluster.scheduler.now_us < self._member.paused_until_us
            and self._is_paused(self.receive, sender, message)
        ):
            return
        cluster.counts.events += 1
        self._run_observer.received(self._id, sender, message)
        self.enter(self.replica.receive, sender, message)
        if cluster.trace.is_kept:
            cluster.note(self._id, "deliver", describe(sender, message))

    def notify(self, event: LocalEvent) -> None:
        """Deliver a local event."""
        if isinstance(event, ShutDown):
            self.is_stopping = True
        self.enter(self.replica.on_local_event, event)
        self._cluster.note(self._id, "on_local_event", type(event).__name__)

    def serve(self, detail: str, call: Callable[[Replica], None]) -> None:
        """Run a client's request at this node's controller; a paused node runs it later."""
        if self.is_over or self._is_paused(self.serve, detail, call):
            return
        self._cluster.counts.events += 1
        self.enter(self._serve, call)
        self._cluster.note(self._id, "client", detail)

    def _serve(self, call: Callable[[Replica], None]) -> None:
        call(self.replica)
        self.replica.turn()

    def checkpoint(self) -> None:
        """Request a checkpoint, as an operator does."""
        self.enter(self._work, self.replica.checkpoints.write_now)
        self._cluster.note(self._id, "checkpoint", "asked for")

    def scrub(self) -> None:
        """Read and verify all files, as the node does in the background, and act on findings."""
        for finding in scrub(self._disk.fs, target_of(self.replica)):
            if not self.is_over:
                self.enter(self._work, lambda found=finding: act_on(self.replica, found))
                self._cluster.note(self._id, "scrub", finding.cause)

    def wake(self) -> None:
        """Compute the next deadline again: the node's clock was changed."""
        if self.is_over or self._is_paused(self.wake):
            return
        self._armed_us = None
        self.enter(self.replica.tick)
        self._cluster.note(self._id, "tick", "clock changed")

    def _is_paused(self, call: Callable[..., None], *arguments: Any) -> bool:
        until_us = self._member.paused_until_us
        scheduler = self._cluster.scheduler
        if scheduler.now_us >= until_us or self._cluster.is_healed:
            return False
        scheduler.at(until_us, call, *arguments)
        return True

    # ------------------------------------------------------------------ the disk

    def _disk_delay(self) -> int:
        return self._cluster.disk_delay() * self._disk.factor

    def _begin_pass(self) -> None:
        self._finish_pass_at(self._cluster.scheduler.now_us + self._disk_delay())

    def _finish_pass_at(self, due_us: int) -> None:
        self._pass_due_us = due_us
        self._cluster.scheduler.at(due_us, self._pass_done, due_us)

    def disk_healed(self) -> None:
        """The disk is fast again: a pass that began while it was slow ends soon."""
        cluster = self._cluster
        now_us = cluster.scheduler.now_us
        due_us = self._pass_due_us
        if due_us is not None and due_us - now_us > cluster.plan.disk_max_us:
            self._finish_pass_at(now_us + self._disk_delay())

    def _pass_done(self, due_us: int) -> None:
        cluster = self._cluster
        now_us = cluster.scheduler.now_us
        if (
            self.is_over
            or due_us != self._pass_due_us
            or (now_us < self._member.paused_until_us and self._is_paused(self._pass_done, due_us))
        ):
            return
        if now_us < self._disk.hung_until_us:
            cluster.scheduler.after(_LOOK_US, self._pass_done, due_us)
            return
        self._pass_due_us = None
        cluster.counts.events += 1
        groups = self.writer.take()
        self.enter(self._write, groups)
        if cluster.trace.is_kept:
            cluster.note(self._id, "disk", f"ticket {groups[-1].ticket}")
        if not self.is_over:
            self.writer.begin()

    def _write(self, groups: list[WriteGroup]) -> None:
        done = self._persistence.execute(groups)
        self._run_observer.persisted(self._id, groups)
        if self._id in self._run_observer.forged:
            # It was fetched; it may be quarantined, as the disk it came from.
            self._disk.has_lost_its_vote = True
        self.replica.write_done(done)

    def to_driver(self, call: Callable[[], None]) -> None:
        self._cluster.scheduler.after(self._disk_delay(), self._worker_done, call)

    def _worker_done(self, call: Callable[[], None]) -> None:
        if not self.is_over:
            self._cluster.counts.events += 1
            self.enter(self._work, call)
            self._cluster.note(self._id, "worker", "")

    def _work(self, call: Callable[[], object]) -> None:
        call()
        self.replica.turn()

    # ------------------------------------------------------------------ ports of the replica

    def send(self, to: NodeId, message: Message) -> None:
        if self._cluster.is_foreign(to):
            self._network.send(self._id, to, message)
            return
        receiver = to if to >= 0 else self._cluster.node_behind(to)
        self._run_observer.sent(self._id, receiver, message)
        self._network.send(self._id, to, message)

    def set_peers(self, addresses: Mapping[NodeId, str], *, is_hint: bool = False) -> None:
        """Use hints only: other addresses matter only where a message forges one."""
        self._network.set_hints(self._id, addresses)

    def on_deadline(self, deadline_ms: int) -> None:
        at_us = max(self.clock.true_us(deadline_ms), self._cluster.scheduler.now_us)
        if self._armed_us is None or at_us < self._armed_us:
            self._armed_us = at_us
            self._cluster.scheduler.at(at_us, self._tick, at_us)

    def _tick(self, at_us: int) -> None:
        if self.is_over or self._armed_us != at_us or self._is_paused(self._tick, at_us):
            return
        self._armed_us = None
        self.enter(self.replica.tick)
        self._cluster.note(self._id, "tick", "")

    def on_delivery_due(self, is_urgent: bool) -> None:  # noqa: FBT001 - the driver's callback
        # As a server does.
        is_awaited = is_urgent or self.replica.controller.is_awaited
        self._cluster.scheduler.after(0 if is_awaited else self._gather_us, self._deliver)

    def _deliver(self) -> None:
        if self.is_over or self._is_paused(self._deliver):
            return
        self.enter(self.replica.deliver)
        self._cluster.note(self._id, "deliver", "gathered")

    def on_failure(self, error: BaseException) -> None:
        self._failure = error

    def on_fault(self, message: str) -> None:
        if self._member.lacks:
            # An older release stops replay; the invariant ``leader-replays`` checks what follows.
            self._cluster.note(self._id, "replay stopped", message)
            self._cluster.happened("replay-stopped")
            return
        raise Violation("no-crash", "the controller reports a fault", node=self._id, fault=message)

    def on_checkpoint(self, info: CheckpointInfo) -> None:
        self._cluster.counts.checkpoints += 1
        self._run_observer.checkpointed(self._id, info.snapshot_id)

    def on_event(self, event: Event) -> None:
        count_event(self._cluster, self._id, self._disk, event)

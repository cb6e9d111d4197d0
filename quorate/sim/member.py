"""One node of a simulated cluster: the production ``Replica`` on simulated surroundings."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from quorate.controller.config import ControllerConfig
from quorate.replica.boot import Stores
from quorate.replica.replica import Replica
from quorate.sim.booting import RESTART_US, NotStarted, open_directory
from quorate.sim.clocks import DriftingClock
from quorate.sim.disk import WriteQueue, crash
from quorate.sim.executor import InlineExecutor
from quorate.sim.invariants.violation import Violation
from quorate.sim.memory_filesystem import LOSE_ALL, CrashMode, PowerLost
from quorate.sim.node_disk import NodeDisk
from quorate.sim.trace import describe
from quorum.core.events import (
    DownloadEnded,
    Event,
    LogDiverged,
    ReplicaRegressed,
    RoleChanged,
    VoterChangeEnded,
    VotingBarred,
)
from quorum.core.messages import Message
from quorum.core.notices import Notice, ShutDown
from quorum.errors import DiskFullError, ErrorCode, LogCondemnedError, StorageError
from quorum.types import NodeId, Uuid, Voter
from snapshot.writer import CheckpointInfo

if TYPE_CHECKING:
    from quorate.sim.cluster import Cluster

_LOOK_US = 20_000
"""How often it is looked whether a hung disk goes on."""


class Member:
    """A node over all its lives. Every entry point ends with a look by the witness."""

    def __init__(
        self,
        cluster: Cluster,
        node_id: NodeId,
        directory_id: Uuid,
        voters: tuple[Voter, ...],
        rng: random.Random,
    ) -> None:
        self.id = node_id
        self.life = 0
        self.replica: Replica | None = None
        self.is_refusing = False
        """While down: whether connecting is refused, rather than unanswered."""
        self._cluster = cluster
        self._rng = rng
        drift = cluster.plan.drift_per_mille
        self.clock = DriftingClock(cluster.scheduler, 1000 + rng.randint(-drift, drift))
        self.disk = NodeDisk(
            cluster.cluster_id, node_id, lambda kind, detail: cluster.note(node_id, kind, detail)
        )
        self.disk.format(directory_id, voters)
        self.directory_id = directory_id
        self._queue: WriteQueue
        self._armed_us: int | None = None
        self._paused_until_us = 0
        self._failure: BaseException | None = None
        self._stopping_life = 0

    @property
    def is_up(self) -> bool:
        """Whether a process is running."""
        return self.replica is not None

    @property
    def is_stopping(self) -> bool:
        """Whether its process was told to go and has not gone yet: it does not stand any more."""
        return self.is_up and self._stopping_life == self.life

    def state(self) -> str:
        """What it is now, for the trace."""
        if self.replica is None:
            return "down"
        node = self.replica.node
        return (
            f"{node.role_name} {node.epoch} "
            f"{node.log_start.offset}..{node.high_watermark}..{node.log_end_offset}"
        )

    # ------------------------------------------------------------------ lives

    def boot(self) -> None:
        """Open the directory and start, as a process would."""
        cluster = self._cluster
        self.life += 1
        life = self.life
        self._armed_us = None
        self._failure = None
        self._queue = WriteQueue(
            lambda: self._begin_pass(life),
            lambda group: cluster.witness.submitted(self.id, group),
        )
        stores = open_directory(self._cluster, self.id, self.disk, self.clock)
        if isinstance(stores, NotStarted):
            self._not_started(stores)
            return
        report = stores.report
        cluster.counts.quarantines += len(report.losses) + len(report.corrupt_snapshots)
        cluster.counts.quarantines += bool(report.recovery.restored_start)
        replica = self._replica_on(stores, life)
        self.replica = replica
        self._persistence = Replica.persistence_of(stores)
        cluster.witness.opened(replica)
        cluster.note(self.id, "start", f"life {life}")
        self._enter(replica.start)

    def _not_started(self, outcome: NotStarted) -> None:
        cluster = self._cluster
        self.disk.fs.crash(self._rng, LOSE_ALL)
        self.disk.keeps_mark = False
        self.life += 1
        cluster.note(self.id, "no start", outcome.why)
        cluster.scheduler.after(outcome.again_us, self._restart, self.life)

    def _replica_on(self, stores: Stores, life: int) -> Replica:
        cluster = self._cluster
        is_voter = self.id in cluster.voter_ids and not self.disk.is_wiped
        return Replica(
            stores,
            self.disk.fs,
            quorum_config=cluster.settings.quorum,
            controller_config=ControllerConfig(
                cluster.cluster_id,
                idle_interval_ms=cluster.settings.idle_ms,
                kraft_version=1,
                session_timeout_ms=400,
            ),
            snapshot_config=cluster.settings.snapshot,
            clock=self.clock,
            rng=random.Random(self._rng.getrandbits(64)),
            writer=self._queue,
            network=self,
            executor=InlineExecutor(),
            to_driver=lambda call: cluster.scheduler.after(
                self._disk_delay(), self._worker_done, life, call
            ),
            on_event=self._note_event,
            on_deadline=self._arm,
            on_failure=self._fail,
            on_fault=self._product_fault,
            bootstrap=() if is_voter else (-2, -3),
            on_checkpoint=self._checkpoint_written,
        )

    def crash(self, name: str, mode: CrashMode, *, is_refusing: bool) -> None:
        """End the process, and the machine with it unless ``mode`` keeps everything."""
        cluster = self._cluster
        replica = self.replica
        if replica is None:
            return
        had_work = self._queue.cut_off(self.disk.fs, self._persistence, self._rng)
        self._down(name, mode, replica, had_work=had_work, is_refusing=is_refusing)
        if is_refusing:
            cluster.network.door_closed(self.id)

    def _down(
        self, name: str, mode: CrashMode, replica: Replica, *, had_work: bool, is_refusing: bool
    ) -> None:
        cluster = self._cluster
        lost = crash(self.disk.fs, self._rng, mode)
        cluster.counts.crashes += 1
        if lost or had_work:
            cluster.counts.lossy_crashes += 1
        self.life += 1
        self.replica = None
        self.is_refusing = is_refusing
        self.disk.keeps_mark = name == "kill"
        cluster.witness.stopped(self.id)
        cluster.note(self.id, "crash", f"{name} lost={lost}")

    # ------------------------------------------------------------------ entry points

    def _enter(self, *calls: Callable[[], object]) -> None:
        """Call into the replica, one after the other; whatever happens, look at it afterwards."""
        cluster = self._cluster
        try:
            for call in calls:
                call()
        except PowerLost:
            self._look()
            self._stop_for("power")
            return
        except DiskFullError as error:
            self._stop_for(f"full: {error}" if self._failure is None else "full")
            return
        except StorageError as error:
            self._storage_failed(error)
            return
        except Violation:
            raise
        except BaseException as error:
            cluster.witness.stepped(self.id)
            raise Violation(
                "no-crash", "the replica raised", node=self.id, error=repr(error)
            ) from error
        self._look()
        if self._failure is not None:
            self._storage_failed(self._failure)

    def _look(self) -> None:
        if self.replica is not None:
            self._cluster.witness.stepped(self.id)

    def _storage_failed(self, error: BaseException) -> None:
        witness = self._cluster.witness
        has_rotted = witness.is_chain_damaged or witness.nodes[self.id].damaged_at is not None
        is_expected = has_rotted if isinstance(error, LogCondemnedError) else self.disk.is_suspect
        if not is_expected or not isinstance(error, StorageError):
            raise Violation(
                "no-crash", "the disk was sound and yet it failed", node=self.id, error=repr(error)
            ) from error
        self._stop_for(f"disk failed: {type(error).__name__}")

    def _stop_for(self, reason: str) -> None:
        """The process ended itself, or its machine did; it comes back after a while."""
        replica = self.replica
        if replica is None:
            return
        self._down(reason, LOSE_ALL, replica, had_work=True, is_refusing=False)
        if not self._cluster.is_healed:
            self._cluster.scheduler.after(RESTART_US, self._restart, self.life)
        else:
            self.boot()

    def _restart(self, life: int) -> None:
        if self.life == life and not self.is_up:
            self.boot()

    def receive(self, sender: NodeId, message: Message) -> None:
        """A message has arrived."""
        if self._is_paused(self.receive, sender, message):
            return
        replica = self.replica
        if replica is not None:
            self._cluster.count_event()
            self._enter(lambda: replica.receive(sender, message))
            if self._cluster.trace.is_kept:
                self._cluster.note(self.id, "deliver", describe(sender, message))

    def tell(self, fact: Notice) -> None:
        """A local fact."""
        replica = self.replica
        if replica is not None:
            if isinstance(fact, ShutDown):
                self._stopping_life = self.life
            self._enter(lambda: replica.notice(fact))
            self._cluster.note(self.id, "notice", type(fact).__name__)

    def serve(self, detail: str, call: Callable[[Replica], None]) -> None:
        """A client's step at this node's controller."""
        replica = self.replica
        if replica is None:
            return
        self._cluster.count_event()
        self._enter(lambda: call(replica), replica.turn)
        self._cluster.note(self.id, "client", detail)

    def checkpoint(self) -> None:
        """An operator asks for a checkpoint now."""
        replica = self.replica
        if replica is not None:
            self._enter(replica.checkpoints.write_now, replica.turn)
            self._cluster.note(self.id, "checkpoint", "asked for")

    def pause(self, for_us: int) -> None:
        """The process gets no processor time for a while."""
        self._paused_until_us = self._cluster.scheduler.now_us + for_us
        self._cluster.note(self.id, "pause", f"{for_us}us")

    def wake(self) -> None:
        """Its clock was changed: find out anew when the next timer ends."""
        if self.replica is not None:
            self._armed_us = None
            self._enter(self.replica.tick)
            self._cluster.note(self.id, "tick", "clock changed")

    def _is_paused(self, call: Callable[..., None], *arguments: Any) -> bool:
        scheduler = self._cluster.scheduler
        if scheduler.now_us >= self._paused_until_us or self._cluster.is_healed:
            return False
        life = self.life

        def resume() -> None:
            if self.life == life:
                call(*arguments)

        scheduler.at(self._paused_until_us, resume)
        return True

    # ------------------------------------------------------------------ the disk

    def _disk_delay(self) -> int:
        return self._cluster.disk_delay() * self.disk.factor

    def _is_hung(self, call: Callable[..., None], *arguments: Any) -> bool:
        if self._cluster.scheduler.now_us >= self.disk.hung_until_us:
            return False
        self._cluster.scheduler.after(_LOOK_US, call, *arguments)
        return True

    def _begin_pass(self, life: int) -> None:
        self._cluster.scheduler.after(self._disk_delay(), self._pass_done, life)

    def _pass_done(self, life: int) -> None:
        replica = self.replica
        if self.life != life or replica is None:
            return
        if self._is_paused(self._pass_done, life) or self._is_hung(self._pass_done, life):
            return
        self._cluster.count_event()
        groups = self._queue.take()

        def write() -> None:
            done = self._persistence.execute(groups)
            self._cluster.witness.persisted(self.id, groups)
            replica.write_done(done)

        self._enter(write)
        self._cluster.note(self.id, "disk", f"ticket {groups[-1].ticket}")
        if self.life == life:
            self._queue.begin()

    def _worker_done(self, life: int, call: Callable[[], None]) -> None:
        replica = self.replica
        if self.life == life and replica is not None:
            self._cluster.count_event()
            self._enter(call, replica.turn)
            self._cluster.note(self.id, "worker", "")

    # ------------------------------------------------------------------ what the replica needs

    def send(self, to: NodeId, message: Message) -> None:
        self._cluster.witness.sent(self.id, to, message)
        self._cluster.network.send(self.id, to, message)

    def set_peers(self, addresses: Mapping[NodeId, str]) -> None:
        """Addresses do not matter here."""

    def _arm(self, deadline_ms: int | None) -> None:
        if deadline_ms is None:
            return
        at_us = max(self.clock.true_us(deadline_ms), self._cluster.scheduler.now_us)
        if self._armed_us is None or at_us < self._armed_us:
            self._armed_us = at_us
            self._cluster.scheduler.at(at_us, self._tick, self.life, at_us)

    def _tick(self, life: int, at_us: int) -> None:
        replica = self.replica
        if self.life != life or self._armed_us != at_us or replica is None:
            return
        if self._is_paused(self._tick, life, at_us):
            return
        self._armed_us = None
        self._enter(replica.tick)
        self._cluster.note(self.id, "tick", "")

    def _fail(self, error: BaseException) -> None:
        self._failure = error

    def _product_fault(self, message: str) -> None:
        raise Violation("no-crash", "the controller reports a fault", node=self.id, fault=message)

    def _checkpoint_written(self, info: CheckpointInfo) -> None:
        self._cluster.counts.checkpoints += 1
        self._cluster.witness.checkpointed(self.id, info.snapshot_id)

    def _note_event(self, event: Event) -> None:
        counts = self._cluster.counts
        if type(event) is LogDiverged:
            counts.truncations += event.end_offset < event.old_end.offset
        elif type(event) is DownloadEnded:
            counts.installs += event.outcome == "installed"
        elif type(event) is RoleChanged:
            counts.leaders += event.role == "Leader"
        elif type(event) is ReplicaRegressed:
            counts.regressions += 1
        elif type(event) is VoterChangeEnded:
            counts.voter_changes += event.error == ErrorCode.NONE
        elif type(event) is VotingBarred:
            counts.barred += 1
            self._cluster.hush(0)
            counts.found_out += self.disk.is_from_the_past
            self.disk.is_from_the_past = False
            if not self.disk.has_lost_its_vote:
                raise Violation(
                    "rightly-barred", "a voter's own disk is barred", node=self.id, why=event.reason
                )

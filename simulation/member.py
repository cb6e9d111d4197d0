"""One node of a simulated cluster across its incarnations.

The disk stays, processes come and go.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from quorate.replica.replica import Replica
from quorum.core.contract.local_events import LocalEvent
from quorum.core.messages.message_types import Received
from quorum.types import NodeId, ReplicaKey, Uuid, Voter
from simulation.booting import RESTART_US, NotStarted, open_directory
from simulation.clocks import DriftingClock
from simulation.disk import crash
from simulation.environment import Environment
from simulation.incarnation import Incarnation, Links
from simulation.memory_filesystem import KEEP_ALL, LOSE_ALL, CrashMode
from simulation.node_disk import NodeDisk


class Member:
    """A node. Messages to it while its process is down are lost."""

    def __init__(
        self,
        cluster: Environment,
        network: Links,
        key: ReplicaKey,
        voters: tuple[Voter, ...],
        rng: random.Random,
    ) -> None:
        node_id = self.id = key.id
        self.incarnation = 0
        """Number of the present incarnation; every attempt to start or stop one counts."""
        self.replica: Replica | None = None
        self.is_refusing = False
        """While down: whether connections are refused rather than unanswered."""
        self.run_observer = cluster.run_observer
        self.network = network
        self._cluster = cluster
        self._rng = rng
        drift = cluster.plan.drift_per_mille
        self.clock = DriftingClock(cluster.scheduler, 1000 + rng.randint(-drift, drift))
        self.disk = NodeDisk(
            cluster.cluster_id,
            node_id,
            lambda kind, detail: cluster.note(node_id, kind, detail),
            uses_native_codec=cluster.settings.uses_native_codec,
        )
        self.disk.format(key.directory_id, voters)
        self.key = key
        """The identity on its disk."""
        self.lacks: frozenset[int] = frozenset()
        """API keys of record types that its present release does not know."""
        self.asks_other_codec = False
        """Whether its configuration names a codec other than its directory's."""
        self.paused_until_us = 0
        self._process: Incarnation | None = None

    @property
    def is_up(self) -> bool:
        """Whether a process is running."""
        return self.replica is not None

    @property
    def is_stopping(self) -> bool:
        """Return whether its process is shutting down: it campaigns no more."""
        return self._process is not None and self._process.is_stopping

    def state(self) -> str:
        """Return its state for the trace."""
        if self.replica is None:
            return "down"
        node = self.replica.node
        return (
            f"{node.role_name} {node.epoch} "
            f"{node.log_start.offset}..{node.high_watermark}..{node.log_end_offset}"
        )

    # ------------------------------------------------------------------ incarnations

    def boot(self) -> None:
        """Open the directory and start, as a process would."""
        cluster = self._cluster
        self.incarnation += 1
        uses_native_codec = cluster.settings.uses_native_codec != self.asks_other_codec
        stores = open_directory(
            cluster, self.id, self.disk, self.clock, self.lacks, uses_native_codec=uses_native_codec
        )
        self.asks_other_codec = False
        if isinstance(stores, NotStarted):
            self._not_started(stores)
            return
        report = stores.report
        cluster.counts.quarantines += len(report.losses) + len(report.corrupt_snapshots)
        cluster.counts.quarantines += bool(report.recovery.restored_start)
        found = report.download
        cluster.counts.downloads_damaged += found is not None and bool(found.damage)
        seed = self._rng.getrandbits(64)
        process = Incarnation(self, cluster, stores, seed, uses_native_codec=uses_native_codec)
        self._process = process
        self.replica = process.replica
        self.run_observer.opened(process.replica, self.clock.seen_ms)
        self.run_observer.nodes[self.id].is_corrupt = self.disk.files.is_flipped
        cluster.note(self.id, "start", f"incarnation {self.incarnation}")
        process.enter(process.replica.start)

    def _not_started(self, outcome: NotStarted) -> None:
        cluster = self._cluster
        self.disk.fs.crash(self._rng, KEEP_ALL if outcome.is_machine_up else LOSE_ALL)
        if not outcome.is_machine_up:
            self.disk.files.keeps_mark = False
            if self.id in self.run_observer.nodes:
                self.run_observer.nodes[self.id].keeps_mark = False
        self.incarnation += 1
        cluster.note(self.id, "no start", outcome.why)
        cluster.scheduler.after(outcome.retry_us, self._restart, self.incarnation)

    def crash(self, name: str, mode: CrashMode, *, is_refusing: bool) -> None:
        """End the process, and the machine with it unless ``mode`` keeps everything."""
        process = self._process
        if process is None:
            return
        had_work = process.end(self._rng)
        self._down(name, mode, had_work=had_work, is_refusing=is_refusing)
        if is_refusing:
            self.network.process_ended(self.id)

    def stop_for(self, reason: str) -> None:
        """Note that the process ended itself, or its machine stopped; it restarts after a while."""
        process = self._process
        if process is None:
            return
        process.end()
        self._down(reason, LOSE_ALL, had_work=True, is_refusing=False)
        if not self._cluster.is_healed:
            self._cluster.scheduler.after(RESTART_US, self._restart, self.incarnation)
        else:
            self.boot()

    def _down(self, name: str, mode: CrashMode, *, had_work: bool, is_refusing: bool) -> None:
        cluster = self._cluster
        lost = crash(self.disk.fs, self._rng, mode)
        cluster.counts.crashes += 1
        if lost or had_work:
            cluster.counts.lossy_crashes += 1
        self.incarnation += 1
        self._process = self.replica = None
        self.is_refusing = is_refusing
        self.disk.files.keeps_mark = name == "kill"
        self.run_observer.stopped(self.id, keeps_mark=self.disk.files.keeps_mark)
        cluster.note(self.id, "crash", f"{name} lost={lost}")

    def stay_down(self) -> None:
        """Cancel the planned restart; ``boot`` starts it again."""
        self.incarnation += 1

    def _restart(self, incarnation: int) -> None:
        if self.incarnation == incarnation and not self.is_up:
            self.boot()

    def pause(self, for_us: int) -> None:
        """Stop the process for a while without ending it."""
        self.paused_until_us = self._cluster.scheduler.now_us + for_us
        self._cluster.note(self.id, "pause", f"{for_us}us")

    def wipe(self, directory_id: Uuid) -> None:
        """Replace the disk of a stopped node by a new one. The caller informs the observer."""
        self.disk.wipe(directory_id)
        self.key = ReplicaKey(self.id, directory_id)

    # ------------------------------------------------------------------ calls to the process

    def receive(self, sender: NodeId, message: Received) -> None:
        """A message has arrived."""
        if self._process is not None:
            self._process.receive(sender, message)

    def notify(self, event: LocalEvent) -> None:
        """Deliver a local event."""
        if self._process is not None:
            self._process.notify(event)

    def serve(self, detail: str, call: Callable[[Replica], None]) -> None:
        """Run a client's request at this node's controller."""
        if self._process is not None:
            self._process.serve(detail, call)

    def checkpoint(self) -> None:
        """Request a checkpoint, as an operator does."""
        if self._process is not None:
            self._process.checkpoint()

    def scrub(self) -> None:
        """Let the scrub reach the corrupt files below it, if there are any."""
        if self._process is not None and self.disk.files.is_anything_flipped:
            self._process.scrub()

    def heal(self) -> None:
        """Plan no more faults of the disk, and end what makes disk or process slow."""
        self.disk.heal()
        self.clock.run_slowly(0, 0)
        if self._process is not None:
            self._process.disk_healed()

    def wake(self) -> None:
        """Compute the next deadline again: the node's clock was changed."""
        if self._process is not None:
            self._process.wake()

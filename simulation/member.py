"""One node of a simulated cluster over all its lives: its disk lives on, its process does not."""

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
    """A node. What comes to it while its process is down finds nobody."""

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
        """Number of its present life, and of every attempt to begin or end one."""
        self.replica: Replica | None = None
        self.is_refusing = False
        """While down: whether connecting is refused, rather than unanswered."""
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
        """Who its disk says it is."""
        self.lacks: frozenset[int] = frozenset()
        """Record types, by API key, that the release it is started with does not know."""
        self.asks_other_codec = False
        """Whether its configuration names the codec that its directory is not in."""
        self.paused_until_us = 0
        self._process: Incarnation | None = None

    @property
    def is_up(self) -> bool:
        """Whether a process is running."""
        return self.replica is not None

    @property
    def is_stopping(self) -> bool:
        """Whether its process was told to go and has not gone yet: it does not stand any more."""
        return self._process is not None and self._process.is_stopping

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
        self.run_observer.opened(process.replica, self.clock.now_ms)
        self.run_observer.nodes[self.id].is_corrupt = self.disk.files.is_flipped
        cluster.note(self.id, "start", f"life {self.incarnation}")
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
        cluster.scheduler.after(outcome.again_us, self._restart, self.incarnation)

    def crash(self, name: str, mode: CrashMode, *, is_refusing: bool) -> None:
        """End the process, and the machine with it unless ``mode`` keeps everything."""
        process = self._process
        if process is None:
            return
        had_work = process.end(self._rng)
        self._down(name, mode, had_work=had_work, is_refusing=is_refusing)
        if is_refusing:
            self.network.door_closed(self.id)

    def stop_for(self, reason: str) -> None:
        """The process ended itself, or its machine did; it comes back after a while."""
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
        """Whatever was to start it again does not; ``boot`` does."""
        self.incarnation += 1

    def _restart(self, incarnation: int) -> None:
        if self.incarnation == incarnation and not self.is_up:
            self.boot()

    def pause(self, for_us: int) -> None:
        """The process gets no processor time for a while."""
        self.paused_until_us = self._cluster.scheduler.now_us + for_us
        self._cluster.note(self.id, "pause", f"{for_us}us")

    def wipe(self, directory_id: Uuid) -> None:
        """While it is down, a new disk takes the place of its own. The witness has to be told."""
        self.disk.wipe(directory_id)
        self.key = ReplicaKey(self.id, directory_id)

    # ------------------------------------------------------------------ for whoever is there

    def receive(self, sender: NodeId, message: Received) -> None:
        """A message has arrived."""
        if self._process is not None:
            self._process.receive(sender, message)

    def notify(self, fact: LocalEvent) -> None:
        """A local fact."""
        if self._process is not None:
            self._process.notify(fact)

    def serve(self, detail: str, call: Callable[[Replica], None]) -> None:
        """A client's step at this node's controller."""
        if self._process is not None:
            self._process.serve(detail, call)

    def checkpoint(self) -> None:
        """An operator asks for a checkpoint now."""
        if self._process is not None:
            self._process.checkpoint()

    def scrub(self) -> None:
        """Its scrub gets round to what has rotted below it, if anything has."""
        if self._process is not None and self.disk.files.is_anything_flipped:
            self._process.scrub()

    def wake(self) -> None:
        """Its clock was changed: find out anew when the next timer ends."""
        if self._process is not None:
            self._process.wake()

"""One real ``Replica`` on a simulated disk, turned by hand: what leaves it and when.

By default the only voter. Writes wait in ``queue`` until ``persist``; messages it sends gather
in ``sent``; time stands still unless moved.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

from quorate.controller.config import ControllerConfig
from quorate.controller.requests import Answer, RequestContext
from quorate.formatting import FormatPlan, format_directory
from quorate.replica.boot import open_stores
from quorate.replica.host import ReplicaHost
from quorate.replica.replica import Replica, ReplicaConfig
from quorum.config import QuorumConfig
from quorum.core.contract.events import Event
from quorum.core.messages.message_types import Message
from quorum.log.config import LogConfig
from quorum.log.election_store import ElectionFile
from quorum.log.layout import partition_directory
from quorum.runtime.ports import WriteGroup
from quorum.types import BootstrapState, ElectionState, Endpoint, NodeId, ReplicaKey, Voter
from simulation.memory_filesystem import LOSE_ALL, CrashMode, MemoryFileSystem
from snapshot.config import SnapshotConfig
from statemachine.commands import Command

DATA_DIR = Path("/data")


class InlineExecutor(Executor):
    """Runs a job at once, in the caller's thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future


class LoneReplica(ReplicaHost):
    """A replica, its disk, and everything it said. ``node_id`` is 1."""

    def __init__(
        self,
        *,
        voters: int = 1,
        snapshot: SnapshotConfig | None = None,
        log: LogConfig | None = None,
        quorum: QuorumConfig | None = None,
        idle_interval_ms: int = 0,
    ) -> None:
        self.fs = MemoryFileSystem()
        self.clock = _ClockOf(self)
        self.rng = random.Random(7)
        self.executor = InlineExecutor()
        self.writer = self.network = self
        self.now_ms = 1_000
        self.sent: list[tuple[NodeId, Message]] = []
        self.events: list[Event] = []
        self.failures: list[BaseException] = []
        self.queue: list[WriteGroup] = []
        self._snapshot = snapshot or SnapshotConfig()
        self._log = log or LogConfig()
        self._quorum = quorum or QuorumConfig()
        self._idle_interval_ms = idle_interval_ms
        self.voters = tuple(
            Voter(
                ReplicaKey(place, bytes([128 + place]) * 16),
                (Endpoint("CONTROLLER", "localhost", 9000 + place),),
            )
            for place in range(1, voters + 1)
        )
        self.fs.make_directory(DATA_DIR)
        plan = FormatPlan(DATA_DIR, "cluster", 1, self.voters[0].key.directory_id, self.voters)
        format_directory(self.fs, plan)
        if voters > 1:
            # As after the first start of all voters, before anybody stood.
            bootstrapped = ElectionState(
                bootstrap_state=BootstrapState(b"\1" * 16, is_complete=True)
            )
            ElectionFile(self.fs, partition_directory(DATA_DIR)).save(bootstrapped)

    # What the replica needs around it.

    def wall_ms(self) -> int:
        return 1_700_000_000_000 + self.now_ms

    def to_driver(self, call: Callable[[], None]) -> None:
        call()

    def on_event(self, event: Event) -> None:
        self.events.append(event)

    def on_failure(self, error: BaseException) -> None:
        self.failures.append(error)

    def on_fault(self, message: str) -> None:
        self.failures.append(RuntimeError(message))

    def submit(self, group: WriteGroup) -> None:
        self.queue.append(group)

    def send(self, to: NodeId, message: Message) -> None:
        self.sent.append((to, message))

    def set_peers(self, addresses: object, *, is_hint: bool = False) -> None:
        del addresses

    # What a test does with it.

    def boot(self) -> LoneReplica:
        """Open the directory and start, as a process would."""
        self.queue.clear()
        self.sent.clear()
        self.stores = open_stores(
            self.fs,
            DATA_DIR,
            node_id=1,
            log_config=self._log,
            snapshot_config=self._snapshot,
            clock=self.clock,
        )
        self.persistence = Replica.persistence_of(self.stores)
        controller = ControllerConfig(
            "cluster", idle_interval_ms=self._idle_interval_ms, kraft_version=1
        )
        config = ReplicaConfig(self._quorum, controller, self._snapshot)
        self.rng = random.Random(7)
        self.replica = Replica(self.stores, self, config)
        self.replica.start()
        return self

    def persist(self) -> None:
        """Let the disk catch up, again and again until nothing is waiting."""
        while self.queue:
            groups, self.queue = self.queue, []
            self.replica.write_done(self.persistence.execute(groups))

    def lead(self) -> LoneReplica:
        """Move time until this lone voter leads and may write."""
        self.advance(5_000)
        assert self.replica.node.can_write, self.replica.node.role_name
        return self

    def advance(self, ms: int) -> None:
        """Move time, tick, and let the disk catch up."""
        self.now_ms += ms
        self.replica.tick()
        self.persist()

    def write(self, command: Command, *, persist: bool = True) -> list[Answer]:
        """Submit a command; the list fills when it is answered."""
        answers: list[Answer] = []
        self.replica.controller.submit(command, RequestContext("tester"), answers.append)
        self.replica.turn()
        if persist:
            self.persist()
        return answers

    def crash(self, mode: CrashMode = LOSE_ALL, seed: int = 1) -> None:
        """Power is lost; ``boot`` brings it back."""
        self.fs.crash(random.Random(seed), mode)


class _ClockOf:
    """Reads a bench's clocks; its field and a clock's method share a name."""

    def __init__(self, bench: LoneReplica) -> None:
        self._bench = bench

    def now_ms(self) -> int:
        return self._bench.now_ms

    def wall_ms(self) -> int:
        return self._bench.wall_ms()

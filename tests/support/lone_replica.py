"""One production ``Replica`` on a simulated disk, controlled step by step.

By default it is the only voter. Writes wait in ``queue`` until ``persist``; sent messages are
collected in ``sent``; time moves only when the test moves it.
"""

from __future__ import annotations

import random

from quorate.controller.config import ControllerConfig
from quorate.controller.requests import Answer, RequestContext
from quorate.replica.replica import ReplicaConfig
from quorum.config import QuorumConfig
from quorum.core.contract.events import Event
from quorum.core.messages.message_types import Message
from quorum.log.config import LogConfig
from quorum.types import Endpoint, NodeId, ReplicaKey, Voter
from simulation.harness.replica_node import DATA_DIR, HandClock, ReplicaNode
from simulation.memory_filesystem import LOSE_ALL, CrashMode
from snapshot.config import SnapshotConfig
from statemachine.commands import Command

_SEED = 7


class LoneReplica(ReplicaNode):
    """A replica, its disk, and its messages and events. ``node_id`` is 1."""

    def __init__(
        self,
        *,
        voters: int = 1,
        snapshot: SnapshotConfig | None = None,
        log: LogConfig | None = None,
        quorum: QuorumConfig | None = None,
        idle_interval_ms: int = 0,
    ) -> None:
        super().__init__(1, "cluster", HandClock(1_000))
        self.clock.wall_offset_ms = 1_700_000_000_000
        self.rng = random.Random(_SEED)
        self.sent: list[tuple[NodeId, Message]] = []
        self.events: list[Event] = []
        self.failures: list[BaseException] = []
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
        directory_id = self.voters[0].key.directory_id
        self.format_disk(directory_id, self.voters, is_bootstrapped=voters > 1)

    # The ports of the replica.

    def on_event(self, event: Event) -> None:
        self.events.append(event)

    def on_failure(self, error: BaseException) -> None:
        self.failures.append(error)

    def on_fault(self, message: str) -> None:
        self.failures.append(RuntimeError(message))

    def send(self, to: NodeId, message: Message) -> None:
        self.sent.append((to, message))

    # For tests.

    def boot(self) -> LoneReplica:
        """Open the directory and start, as a process would."""
        self.groups.clear()
        self.sent.clear()
        stores = self.open(self._log, self._snapshot)
        controller = ControllerConfig(
            "cluster", idle_interval_ms=self._idle_interval_ms, kraft_version=1
        )
        self.rng = random.Random(_SEED)
        self.run(stores, ReplicaConfig(self._quorum, controller, self._snapshot)).start()
        return self

    def persist(self) -> None:
        """Complete the disk's work until none is left."""
        while self.groups:
            groups = tuple(self.groups)
            self.groups.clear()
            self.complete(*groups)

    def lead(self) -> LoneReplica:
        """Move the time until this lone voter leads and accepts writes."""
        self.advance(5_000)
        assert self.replica.node.can_write, self.replica.node.role_name
        return self

    def advance(self, ms: int) -> None:
        """Move the time, tick, and complete the disk's work."""
        self.clock.time_ms += ms
        self.replica.tick()
        self.persist()

    def write(self, command: Command, *, persist: bool = True) -> list[Answer]:
        """Submit a command; its answer is added to the returned list."""
        answers: list[Answer] = []
        self.replica.controller.submit(command, RequestContext("tester"), answers.append)
        self.replica.turn()
        if persist:
            self.persist()
        return answers

    def crash(self, mode: CrashMode = LOSE_ALL, seed: int = 1) -> None:
        """Simulate a power failure; ``boot`` starts the replica again."""
        self.fs.crash(random.Random(seed), mode)

"""Real replicas that run at the same time, for runs with recoveries; their disks outlive them.

Messages are delivered at random, and only between nodes of one incarnation of the log (ADR 65).
"""

from __future__ import annotations

import random
from collections.abc import Iterable

from quorate.controller.config import ControllerConfig
from quorate.controller.requests import Answer, RequestContext
from quorate.replica.replica import Replica, ReplicaConfig
from quorum.config import QuorumConfig
from quorum.core.contract.events import Event
from quorum.core.contract.local_events import RequestFailed
from quorum.core.messages.message_types import REQUESTS, Message
from quorum.errors import ErrorCode
from quorum.log.config import LogConfig
from quorum.log.identity import load_identity
from quorum.transport import hello
from quorum.types import Endpoint, NodeId, ReplicaKey, Voter
from simulation.harness.arrival import arrived
from simulation.harness.replica_node import DATA_DIR, HandClock, ReplicaNode
from simulation.invariants.violation import Violation
from simulation.memory_filesystem import LOSE_ALL, MemoryFileSystem
from snapshot.config import SnapshotConfig
from statemachine.commands import InitProducerId

CLUSTER = "recovered"
LOSS = 0.05
STEPS_MAX = 60_000
TRIMMING = SnapshotConfig(min_changed_records_ratio=0.1, max_bytes_between=600)
QUICK = QuorumConfig(start_offset_lag_max_ms=1_000)
_FIRST_SERVER = -2


def voter(node_id: NodeId, disk: int = 0) -> Voter:
    """Return a voter on one of its disks."""
    key = ReplicaKey(node_id, bytes([16 * disk + node_id]) * 16)
    return Voter(key, (Endpoint("CONTROLLER", f"n{node_id}", 9093),))


class Node(ReplicaNode):
    """One process; its disk comes from elsewhere."""

    def __init__(self, world: World, node_id: NodeId, fs: MemoryFileSystem) -> None:
        super().__init__(node_id, CLUSTER, world.clock)
        self.world = world
        self.fs = fs
        self.rng = random.Random(world.rng.getrandbits(32))
        self.incarnation_id = load_identity(fs, DATA_DIR).log_incarnation_id
        controller = ControllerConfig(CLUSTER, kraft_version=1)
        config = ReplicaConfig(
            QUICK,
            controller,
            world.snapshots,
            bootstrap=world.servers,
            endpoints=voter(node_id).endpoints,
        )
        self.run(self.open(LogConfig(), world.snapshots), config)

    @property
    def running(self) -> Replica:
        """The replica, which runs until the world ends."""
        if self.replica is None:
            raise AssertionError("the node does not run")
        return self.replica

    def on_deadline(self, deadline_ms: int) -> None:
        """Nothing: every node ticks whenever time passes."""

    def on_event(self, event: Event) -> None:
        """Nothing depends on events."""

    def on_failure(self, error: BaseException) -> None:
        raise error

    def on_fault(self, message: str) -> None:
        raise AssertionError(message)

    def send(self, to: NodeId, message: Message) -> None:
        self.world.queue.append((self.node_id, to, message))

    def work(self) -> None:
        """Let the disk complete what waits."""
        while self.groups:
            groups = tuple(self.groups)
            self.groups.clear()
            self.complete(*groups)


class World:
    """Processes that run at the same time."""

    def __init__(
        self,
        rng: random.Random,
        clock: HandClock,
        disks: dict[NodeId, MemoryFileSystem],
        servers: Iterable[NodeId],
        *,
        snapshots: SnapshotConfig = TRIMMING,
    ) -> None:
        """``servers`` are asked for the leader by nodes that know no voter."""
        self.snapshots = snapshots
        self.isolated: set[NodeId] = set()
        """Nodes whose messages are lost."""
        self.acknowledged = 0
        """The highest input of a program whose output this world acknowledged."""
        self.rng, self.clock = rng, clock
        self.queue: list[tuple[NodeId, NodeId, Message]] = []
        self._behind = {_FIRST_SERVER - place: each for place, each in enumerate(servers)}
        self.servers = tuple(self._behind)
        self._aliases: dict[tuple[NodeId, int], NodeId] = {}
        self.steps = 0
        self.nodes = {each: Node(self, each, fs) for each, fs in disks.items()}
        for node in self.nodes.values():
            node.running.start()
            node.work()

    def add(self, node_id: NodeId, fs: MemoryFileSystem) -> None:
        """Start one more process."""
        node = self.nodes[node_id] = Node(self, node_id, fs)
        node.running.start()
        node.work()

    def remove(self, node_id: NodeId) -> None:
        """End a process, with its messages."""
        del self.nodes[node_id]
        self.queue = [each for each in self.queue if each[0] != node_id]

    def step(self) -> None:
        """Deliver one message, or let time pass."""
        self.steps += 1
        if self.queue and self.rng.random() < 0.9:
            self._deliver(*self.queue.pop(self.rng.randrange(min(len(self.queue), 4))))
        else:
            self.clock.time_ms += self.rng.randint(1, 30)
            for node in self.nodes.values():
                node.running.tick()
                node.work()

    def _deliver(self, sender: NodeId, to: NodeId, message: Message) -> None:
        target = self.nodes.get(self._behind.get(to, to))
        author = self.nodes[sender]
        is_request = isinstance(message, REQUESTS)
        meets = target is not None and not hello.is_other_log(
            author.incarnation_id, target.incarnation_id
        )
        if target is None or not meets or self._is_lost(sender, target.node_id):
            if is_request:
                author.running.on_local_event(RequestFailed(to, message.request_id))
                author.work()
            return
        if is_request:
            self._aliases[sender, message.request_id] = to
        else:
            sender = self._aliases.get((target.node_id, message.request_id), sender)
        target.running.receive(sender, arrived(message))
        target.work()

    def _is_lost(self, sender: NodeId, to: NodeId) -> bool:
        return not self.isolated.isdisjoint((sender, to)) or self.rng.random() < LOSS

    def leader(self, incarnation_id: bytes) -> Node | None:
        """Return the leader of that incarnation."""
        for node in self.nodes.values():
            if node.running.node.can_write and node.incarnation_id == incarnation_id:
                return node
        return None

    def write(self, incarnation_id: bytes, count: int) -> None:
        """Write until so many commands are acknowledged."""
        answers: list[Answer] = []
        asked: Node | None = None
        done, waited = 0, 0
        while done < count:
            leader = self.leader(incarnation_id)
            if answers or asked is not leader or waited > 300:
                done += bool(answers) and answers[0].code is ErrorCode.NONE
                answers, asked, waited = [], leader, 0
                if leader is not None and leader.replica is not None:
                    leader.replica.controller.submit(
                        InitProducerId(), RequestContext("test"), answers.append
                    )
                    leader.replica.turn()
                    leader.work()
            waited += 1
            self.step()
            if self.steps > STEPS_MAX:
                raise Violation("liveness", "no write was acknowledged", done=done)

    def disks(self) -> dict[NodeId, MemoryFileSystem]:
        """Return the disks after a power failure everywhere."""
        for node in self.nodes.values():
            node.fs.crash(self.rng, LOSE_ALL)
        return {each: node.fs for each, node in self.nodes.items()}

"""A cluster loses its majority, one disk goes on as a new incarnation, and former voters return.

Whole replicas on simulated disks, a lossy network, one clock. Peers meet by the rule of the hello,
as on a stream. Former voters may be a majority of their own; they may elect a leader of the former
incarnation, which is outside of what the recovered cluster can know.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

from quorate.controller.config import ControllerConfig
from quorate.controller.requests import Answer, RequestContext
from quorate.formatting import FormatPlan, format_directory
from quorate.recovery.incarnation import Beginning, Begun, begin
from quorate.recovery.plan import make_plan
from quorate.recovery.survivor import read_survivor
from quorate.replica.replica import ReplicaConfig
from quorum.batch import scan_batches
from quorum.config import QuorumConfig
from quorum.core.contract.events import Event
from quorum.core.contract.local_events import AddVoter, RequestFailed
from quorum.core.messages.message_types import REQUESTS, Message
from quorum.errors import ErrorCode, InvariantViolation, QuorateError
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
from tests.simulation.experiments.experiment import Experiment

NAME = "incarnations"
CLUSTER = "recovered"
LOSS = 0.05
STEPS_MAX = 60_000
TRIMMING = SnapshotConfig(min_changed_records_ratio=0.1, max_bytes_between=600)
QUICK = QuorumConfig(start_offset_lag_max_ms=1_000)
_FIRST_SERVER = -2


def voter(node_id: NodeId, disk: int = 0) -> Voter:
    key = ReplicaKey(node_id, bytes([16 * disk + node_id]) * 16)
    return Voter(key, (Endpoint("CONTROLLER", f"n{node_id}", 9093),))


FRESH = 4
VOTERS = tuple(voter(node_id) for node_id in (1, 2, 3))


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
            QUICK, controller, TRIMMING, bootstrap=world.servers, endpoints=voter(node_id).endpoints
        )
        self.run(self.open(LogConfig(), TRIMMING), config)

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

    def __init__(self, rng: random.Random, clock: HandClock, disks: dict[NodeId, MemoryFileSystem],
                 servers: Iterable[NodeId]) -> None:  # fmt: skip
        self.rng, self.clock = rng, clock
        self.queue: list[tuple[NodeId, NodeId, Message]] = []
        self._behind = {_FIRST_SERVER - place: each for place, each in enumerate(servers)}
        self.servers = tuple(self._behind)
        self._aliases: dict[tuple[NodeId, int], NodeId] = {}
        self.steps = 0
        self.nodes = {each: Node(self, each, fs) for each, fs in disks.items()}
        for node in self.nodes.values():
            assert node.replica is not None
            node.replica.start()
            node.work()

    def add(self, node_id: NodeId, fs: MemoryFileSystem) -> None:
        """Start one more process."""
        node = self.nodes[node_id] = Node(self, node_id, fs)
        assert node.replica is not None
        node.replica.start()
        node.work()

    def step(self) -> None:
        """Deliver one message, or let time pass."""
        self.steps += 1
        if self.queue and self.rng.random() < 0.9:
            self._deliver(*self.queue.pop(self.rng.randrange(min(len(self.queue), 4))))
        else:
            self.clock.time_ms += self.rng.randint(1, 30)
            for node in self.nodes.values():
                assert node.replica is not None
                node.replica.tick()
                node.work()

    def _deliver(self, sender: NodeId, to: NodeId, message: Message) -> None:
        target = self.nodes.get(self._behind.get(to, to))
        author = self.nodes[sender]
        is_request = isinstance(message, REQUESTS)
        meets = target is not None and not hello.is_other_log(
            author.incarnation_id, target.incarnation_id
        )
        if target is None or not meets or self.rng.random() < LOSS:
            if is_request:
                assert author.replica is not None
                author.replica.on_local_event(RequestFailed(to, message.request_id))
                author.work()
            return
        if is_request:
            self._aliases[sender, message.request_id] = to
        else:
            sender = self._aliases.get((target.node_id, message.request_id), sender)
        assert target.replica is not None
        target.replica.receive(sender, arrived(message))
        target.work()

    def leader(self, incarnation_id: bytes) -> Node | None:
        """Return the leader of that incarnation."""
        for node in self.nodes.values():
            assert node.replica is not None
            if node.replica.node.can_write and node.incarnation_id == incarnation_id:
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


def run(seed: int) -> Violation | None:
    """Lose a majority, recover, grow again while former voters return."""
    rng = random.Random(seed)
    clock = HandClock(1_000)
    try:
        _recover(rng, clock)
    except Violation as found:
        return found
    except (InvariantViolation, QuorateError, AssertionError) as error:
        return Violation(NAME, "a node failed", error=repr(error))
    return None


def _recover(rng: random.Random, clock: HandClock) -> None:
    disks = {each.key.id: MemoryFileSystem() for each in VOTERS}
    for each in VOTERS:
        disks[each.key.id].make_directory(DATA_DIR)
        plan = FormatPlan(DATA_DIR, CLUSTER, each.key.id, each.key.directory_id, VOTERS)
        format_directory(disks[each.key.id], plan)
    before = World(rng, clock, disks, (1, 2, 3))
    before.write(bytes(16), rng.randint(1, 12))
    for _ in range(rng.randrange(200)):
        before.step()
    disks = before.disks()
    left = rng.choice(sorted(disks))
    old = {each: fs for each, fs in disks.items() if each != left}
    begun = _begin(disks[left], clock)
    former = {each: _log(fs) for each, fs in old.items()}

    world = World(rng, clock, {left: disks[left]}, (left,))
    world.write(begun.incarnation.id, rng.choice((1, 1, 40)))
    if rng.random() < 0.5:
        node = world.nodes[left].replica
        assert node is not None
        node.checkpoints.write_now()
        for _ in range(100):
            world.step()
    returned = rng.sample(sorted(old), rng.randint(1, 2))
    for each in returned:
        world.add(each, old[each])
    world.add(FRESH, _formatted(FRESH, begun.incarnation.id))
    _catch_up(world, FRESH, begun)
    _add_voter(world, FRESH, begun)
    world.write(begun.incarnation.id, 10)
    after = world.disks()
    _check_recovered([after[left], after[FRESH]], begun)
    for each in returned:
        _check_former(each, former[each], after[each])


def _begin(fs: MemoryFileSystem, clock: HandClock) -> Begun:
    plan = make_plan([read_survivor(fs, DATA_DIR)])
    newest = max(each.newest_epoch for each in plan.survivors)
    beginning = Beginning(b"recovered-random", plan.kept_end, newest)
    return begin(fs, DATA_DIR, load_identity(fs, DATA_DIR), beginning, clock)


def _formatted(node_id: NodeId, incarnation_id: bytes) -> MemoryFileSystem:
    fs = MemoryFileSystem()
    fs.make_directory(DATA_DIR)
    key = voter(node_id, disk=1).key
    format_directory(
        fs,
        FormatPlan(DATA_DIR, CLUSTER, node_id, key.directory_id, log_incarnation_id=incarnation_id),
    )
    return fs


def _catch_up(world: World, node_id: NodeId, begun: Begun) -> None:
    """Wait until an observer has the beginning, from the log or from a checkpoint."""
    replica = world.nodes[node_id].replica
    assert replica is not None
    while replica.node.high_watermark < begun.end.offset:
        world.step()
        if world.steps > STEPS_MAX:
            raise Violation("liveness", "the fresh node does not catch up", node=node_id)
    in_force = replica.node.voter_set_at(replica.node.log_end_offset)
    if in_force.incarnation != begun.incarnation:
        raise Violation(NAME, "a node forgot the incarnation", node=node_id)


def _add_voter(world: World, node_id: NodeId, begun: Begun) -> None:
    """Ask the leader until the node is a voter."""
    added = voter(node_id, disk=1)
    while True:
        leader = world.leader(begun.incarnation.id)
        if leader is not None and leader.replica is not None:
            if added.key in {each.key for each in leader.replica.node.voters}:
                return
            leader.replica.ask(AddVoter(0, added), lambda _: None)
            leader.work()
        for _ in range(200):
            world.step()
        if world.steps > STEPS_MAX:
            raise Violation("liveness", "the fresh node did not become a voter", node=node_id)


def _opened(fs: MemoryFileSystem) -> Node:
    world = World(random.Random(0), HandClock(10**9), {}, ())
    return Node(world, load_identity(fs, DATA_DIR).node_id, fs)


def _log(fs: MemoryFileSystem) -> bytes:
    """Return what a disk knows to be committed, or the whole log if it knows nothing."""
    stores = _opened(fs).stores
    assert stores is not None
    end = stores.log.high_watermark
    data = stores.log.read(stores.log.start.offset, 1 << 30) if stores.log.end.offset else b""
    kept = [each for each in scan_batches(data) if each.end_offset <= end] if data else []
    return data[: kept[-1].end_position] if kept else b""


def _check_recovered(disks: Iterable[MemoryFileSystem], begun: Begun) -> None:
    for fs in disks:
        stores = _opened(fs).stores
        assert stores is not None
        found = stores.state.voters[-1]
        if found.incarnation != begun.incarnation:
            raise Violation(NAME, "a node forgot the incarnation", node=stores.identity.node_id)
        if stores.log.end.offset < begun.end.offset:
            raise Violation(NAME, "the beginning was truncated", node=stores.identity.node_id)


def _check_former(node_id: NodeId, known: bytes, fs: MemoryFileSystem) -> None:
    stores = _opened(fs).stores
    assert stores is not None
    if stores.state.voters[-1].incarnation.number:
        raise Violation(NAME, "a former voter has records of the recovery", node=node_id)
    if stores.log.start.offset == 0 and not stores.log.read(0, 1 << 30).startswith(known):
        raise Violation(NAME, "a former voter lost committed records", node=node_id)


RECOVERED_CLUSTER = Experiment("a recovered cluster", run)

"""A cluster loses its majority, one disk goes on as a new incarnation, and former voters return.

Whole replicas on simulated disks, a lossy network, one clock. Peers meet by the rule of the hello,
as on a stream. Former voters may be a majority of their own; they may elect a leader of the former
incarnation, which is outside of what the recovered cluster can know.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

from quorate.formatting import FormatPlan, format_directory
from quorate.recovery.incarnation import Beginning, Begun, begin
from quorate.recovery.plan import make_plan
from quorate.recovery.survivor import read_survivor
from quorum.batch import scan_batches
from quorum.core.contract.local_events import AddVoter
from quorum.errors import InvariantViolation, QuorateError
from quorum.log.identity import load_identity
from quorum.types import NodeId
from simulation.harness.replica_node import DATA_DIR, HandClock
from simulation.invariants.violation import Violation
from simulation.memory_filesystem import MemoryFileSystem
from simulation.recoveries.world import CLUSTER, STEPS_MAX, Node, World, voter
from tests.simulation.experiments.experiment import Experiment

NAME = "incarnations"
FRESH = 4
VOTERS = tuple(voter(node_id) for node_id in (1, 2, 3))


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

"""One run: a cluster loses its majority, is recovered from one disk, and goes on; repeatedly.

Consumers, a watch and programs go on over every recovery. Five properties are checked: ``NAMES``.
"""

from __future__ import annotations

import random

from quorate.client.log_consumer import ResetPolicy
from quorate.formatting import FormatPlan, format_directory
from quorate.recovery.incarnation import Beginning, begin
from quorate.recovery.plan import make_plan
from quorate.recovery.survivor import read_survivor
from quorum.core.contract.local_events import AddVoter
from quorum.log.identity import load_identity
from quorum.types import ZERO_UUID, NodeId, Uuid
from simulation.harness.replica_node import DATA_DIR, HandClock
from simulation.invariants.violation import Violation
from simulation.memory_filesystem import MemoryFileSystem
from simulation.operator import asked
from simulation.recoveries.counts import RecoveryCounts
from simulation.recoveries.process import PROCESSED_ONCE, ZOMBIE, Process, check_outputs
from simulation.recoveries.read_history import (
    FALSE_ALARM,
    INEXACT,
    SKIPPED,
    ReadHistory,
    batches_in,
)
from simulation.recoveries.reader import Reader
from simulation.recoveries.watcher import Watcher
from simulation.recoveries.world import CLUSTER, Node, World, voter
from snapshot.config import SnapshotConfig

NAMES = (SKIPPED, INEXACT, FALSE_ALARM, PROCESSED_ONCE, ZOMBIE)
"""The properties, in the order of issue and documents."""
NOTHING_TRIMMED = SnapshotConfig()
STEPS = (300, 900)
RECOVERIES = (1, 1, 2, 3)
END_STEPS_MAX = 40_000
LAGGING_SHARE = 0.5
ASLEEP_SHARE = 0.5
TAKEOVER_SHARE = 0.004
CUT_SHARE = 0.006
WATCH_SHARE = 0.15
HEAL_SHARE = 0.012


class RecoveryRun:
    """One run. The seed decides everything."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._clock = HandClock(1_000)
        self.counts = RecoveryCounts()
        self._readers = [
            Reader(policy, self._rng, self.counts)
            for policy in (ResetPolicy.NONE, ResetPolicy.EARLIEST, ResetPolicy.LATEST)
        ]
        self._watcher_rng = random.Random(f"watcher {seed}")
        self._watcher = Watcher(self._watcher_rng, self.counts)
        self._asleep: Reader | None = None
        """Reads nothing for a while."""
        self._processes: list[Process] = []
        self._started = 0
        self._incarnation: Uuid = ZERO_UUID
        self._begun_end = 0
        self._next_node = 4
        self._old: dict[NodeId, MemoryFileSystem] = {}
        """Directories of earlier incarnations."""
        self._world: World

    def run(self) -> RecoveryCounts:
        """Run, recover, and compare.

        Raises:
            Violation: A guarantee does not hold.
        """
        try:
            return self._run()
        finally:
            self._watcher.close()

    def _run(self) -> RecoveryCounts:
        voters = tuple(voter(node_id) for node_id in (1, 2, 3))
        disks = {each.key.id: MemoryFileSystem() for each in voters}
        for each in voters:
            disks[each.key.id].make_directory(DATA_DIR)
            key = each.key
            plan = FormatPlan(DATA_DIR, CLUSTER, key.id, key.directory_id, voters)
            format_directory(disks[key.id], plan)
        self._enter(self._new_world(disks))
        self._take_over()
        self._steps()
        for _ in range(self._rng.choice(RECOVERIES)):
            self._recover()
            self._steps()
        self._end()
        return self.counts

    # ------------------------------------------------------------------ what happens

    def _new_world(self, disks: dict[NodeId, MemoryFileSystem]) -> World:
        return World(self._rng, self._clock, disks, sorted(disks), snapshots=NOTHING_TRIMMED)

    @property
    def _histories(self) -> list[ReadHistory]:
        return [*(each.history for each in self._readers), self._watcher.history]

    def _enter(self, world: World, kept: dict[int, bytes] | None = None) -> None:
        self._world = world
        for reader in self._readers:
            reader.meet(world, self._incarnation, kept)
        self._watcher.meet(world, self._incarnation, kept)
        for process in self._processes:
            process.world = world

    def _steps(self) -> None:
        # It is far behind at the next recovery, so a former voter has records that it lacks.
        self._asleep = (
            self._rng.choice(self._readers) if self._rng.random() < ASLEEP_SHARE else None
        )
        for _ in range(self._rng.randint(*STEPS)):
            self._step()

    def _step(self) -> None:
        rng, world = self._rng, self._world
        world.step()
        if rng.random() < 0.3:
            reader = rng.choice(self._readers)
            if reader is not self._asleep:
                reader.poll()
        if self._watcher_rng.random() < WATCH_SHARE:
            self._watcher.poll()
        if rng.random() < TAKEOVER_SHARE or all(each.has_ended for each in self._processes):
            self._take_over()
        for process in self._processes:
            process.step()
        if not world.isolated and rng.random() < CUT_SHARE:
            leader = world.leader(self._incarnation)
            if leader is not None and len(world.nodes) > 1:
                world.isolated.add(leader.node_id)
        elif world.isolated and rng.random() < HEAL_SHARE:
            world.isolated.clear()

    def _take_over(self) -> None:
        """Start another process; the present ones go on, and are zombies once it has begun."""
        self._started += 1
        process = Process(self._started, self._rng, self.counts)
        process.world = self._world
        self._processes = [*(each for each in self._processes if not each.has_ended), process]

    # ------------------------------------------------------------------ a disaster

    def _recover(self) -> None:
        """All but one disk of the present incarnation are lost; go on with that one."""
        world = self._world
        current = [
            node.node_id
            for node in world.nodes.values()
            if node.incarnation_id == self._incarnation
            and node.running.node.log_end_offset >= self._begun_end
        ]
        left = self._rng.choice(sorted(current))
        if self._rng.random() < LAGGING_SHARE:
            # The disk that survives misses what the others write meanwhile.
            world.isolated = {left}
            self._steps()
        disks = world.disks()
        fs = disks[left]
        before = [process.newest for process in self._processes]
        plan = make_plan([read_survivor(fs, DATA_DIR)])
        newest = max(each.newest_epoch for each in plan.survivors)
        self._incarnation = self._rng.randbytes(16)
        beginning = Beginning(
            self._incarnation, plan.kept_end, newest, endpoints=voter(left).endpoints
        )
        begun = begin(fs, DATA_DIR, load_identity(fs, DATA_DIR), beginning, self._clock)
        self._begun_end = begun.end.offset
        self.counts.recoveries += 1
        self._old |= {id_: each for id_, each in disks.items() if id_ != left}

        new = self._new_world({left: fs})
        log = _log(new.nodes[left])
        self._enter(new, {each.base: each.data for each in batches_in(log)})
        self.counts.lossy_recoveries += any(each.first_lost() >= 0 for each in self._histories)
        last = check_outputs(log)
        self.counts.reprocessed += sum(max(0, newest - last) for newest in before)
        self._grow(left)

    def _grow(self, left: NodeId) -> None:
        """Add a fresh node, and perhaps one former voter with its old directory."""
        world, fresh = self._world, self._next_node
        self._next_node += 1
        if self._rng.random() < 0.5:
            former = self._rng.choice(sorted(self._old))
            if former not in world.nodes and former != left:
                world.add(former, self._old.pop(former))
                self.counts.former_voters += 1
                if self._asleep is not None:
                    self._asleep.meet_both(world.nodes[left], world.nodes[former])
        self._asleep = None
        fs = MemoryFileSystem()
        fs.make_directory(DATA_DIR)
        added = voter(fresh, disk=1)
        format_directory(
            fs,
            FormatPlan(
                DATA_DIR,
                CLUSTER,
                fresh,
                added.key.directory_id,
                log_incarnation_id=self._incarnation,
            ),
        )
        world.add(fresh, fs)
        for _ in range(40):
            for _ in range(50):
                self._step()
            leader = world.leader(self._incarnation)
            if leader is not None and leader.node_id == left:
                keys = {each.key for each in leader.running.node.voters}
                if added.key in keys:
                    return
                leader.running.ask(AddVoter(0, added, origin=asked("add", fresh)), lambda _: None)
                leader.work()

    # ------------------------------------------------------------------ the end

    def _end(self) -> None:
        """Heal; every consumer reads to the end of the surviving history."""
        world = self._world
        world.isolated.clear()
        for node in list(world.nodes.values()):
            if node.incarnation_id != self._incarnation:
                world.remove(node.node_id)
        goal = -1
        for _ in range(END_STEPS_MAX):
            world.step()
            leader = world.leader(self._incarnation)
            if leader is None:
                continue
            core = leader.running.node
            if goal < 0 and core.high_watermark == core.log_end_offset:
                goal = core.log_end_offset
            if goal >= 0:
                if core.log_end_offset != goal:
                    goal = -1
                    continue
                for reader in self._readers:
                    reader.poll()
                self._watcher.poll()
                ends = {each.end for each in self._histories}
                if ends == {goal} and all(each.first_lost() < 0 for each in self._histories):
                    log = _log(leader)
                    for each in self._histories:
                        each.check_end(log)
                    check_outputs(log, acknowledged=world.acknowledged)
                    return
        raise Violation(SKIPPED, "the surviving history was not read to its end", end=goal)


def _log(node: Node) -> bytes:
    stores = node.stores
    if stores is None:
        raise AssertionError("the node has no stores")
    return stores.log.read(0, 1 << 30) if stores.log.end.offset else b""

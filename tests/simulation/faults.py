"""What may go wrong in a run, as data drawn from its seed, and who makes it happen."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quorum.core.notices import Resign
from tests.support.memory_filesystem import (
    KEEP_ALL,
    LOSE_ALL,
    REORDERED,
    TORN_TAIL,
    CrashMode,
    Faults,
)

if TYPE_CHECKING:
    from tests.simulation.cluster import Cluster
    from tests.simulation.member import Member

CRASH_MODES: dict[str, CrashMode] = {
    "kill": KEEP_ALL,
    "power": LOSE_ALL,
    "torn": TORN_TAIL,
    "reorder": REORDERED,
}


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """Chances and sizes of everything that goes wrong. Times in microseconds."""

    loss: float
    duplication: float
    delay_min_us: int
    delay_max_us: int
    straggle: float
    """Chance that a message takes up to fifty times as long, so that others overtake it."""
    disk_min_us: int
    disk_max_us: int
    disk_stall: float
    """Chance that a disk pass takes up to a hundred times as long."""
    fault_every_us: int
    """Mean time between two acts of the fault maker."""
    drift_per_mille: int
    """Clocks run faster or slower by up to this."""

    @staticmethod
    def draw(rng: random.Random) -> FaultPlan:
        """A plan from anywhere between calm and storm."""
        delay = rng.choice((200, 1_000, 4_000))
        disk = rng.choice((100, 500, 3_000))
        return FaultPlan(
            loss=rng.choice((0.0, 0.01, 0.05)),
            duplication=rng.choice((0.0, 0.01, 0.05)),
            delay_min_us=delay // 4,
            delay_max_us=delay,
            straggle=rng.choice((0.0, 0.02, 0.1)),
            disk_min_us=disk // 4,
            disk_max_us=disk,
            disk_stall=rng.choice((0.0, 0.01, 0.05)),
            fault_every_us=rng.choice((30_000, 80_000, 200_000)),
            drift_per_mille=rng.choice((0, 20, 100)),
        )


class FaultMaker:
    """Does one harm, or mends one, each time its turn comes; ends with ``Cluster.heal``."""

    def __init__(self, cluster: Cluster, rng: random.Random) -> None:
        self._cluster = cluster
        self._rng = rng
        self._acts = (
            (18, self._crash),
            (20, self._restart),
            (7, self._crash_all),
            (14, self._partition),
            (12, self._mend),
            (6, self._pause),
            (5, self._resign),
            (6, self._power_in_call),
            (3, self._failing_sync),
            (3, self._full_disk),
            (10, self._checkpoint),
            (2, self._wall_step),
            (6, self._crash_leader),
            (4, self._isolate_leader),
            (24, self._rot),
        )
        self._weights = [weight for weight, _ in self._acts]
        self._later()

    def _later(self) -> None:
        every = self._cluster.plan.fault_every_us
        self._cluster.scheduler.after(1 + int(self._rng.expovariate(1.0) * every), self._act)

    def _act(self) -> None:
        if self._cluster.is_healed:
            return
        self._rng.choices(self._acts, self._weights)[0][1]()
        self._later()

    def _any(self, *, up: bool) -> Member | None:
        members = [each for each in self._cluster.members.values() if each.is_up == up]
        return self._rng.choice(members) if members else None

    def _leader(self) -> Member | None:
        leaders = [
            each
            for each in self._cluster.members.values()
            if each.replica is not None and each.replica.node.is_leader
        ]
        return self._rng.choice(leaders) if leaders else None

    def _stop(self, member: Member | None) -> None:
        if member is not None:
            name = self._rng.choice(sorted(CRASH_MODES))
            member.crash(name, CRASH_MODES[name], is_refusing=name == "kill")
            self._cluster.scheduler.after(
                int(self._rng.expovariate(1.0) * 150_000), self._start, member
            )

    def _start(self, member: Member) -> None:
        if not member.is_up and not self._cluster.is_healed:
            member.boot()

    def _crash(self) -> None:
        self._stop(self._any(up=True))

    def _crash_leader(self) -> None:
        self._stop(self._leader())

    def _restart(self) -> None:
        member = self._any(up=False)
        if member is not None:
            member.boot()

    def _crash_all(self) -> None:
        if self._rng.random() < 0.3:
            for member in self._cluster.members.values():
                if member.is_up:
                    self._stop(member)

    def _partition(self) -> None:
        ids = sorted(self._cluster.members)
        side = [each for each in ids if self._rng.random() < 0.5]
        rest = [each for each in ids if each not in side]
        self._cluster.network.cut(side, rest, both_ways=self._rng.random() < 0.6)

    def _isolate_leader(self) -> None:
        leader = self._leader()
        if leader is not None:
            rest = [each for each in sorted(self._cluster.members) if each != leader.id]
            self._cluster.network.cut([leader.id], rest, both_ways=self._rng.random() < 0.5)

    def _mend(self) -> None:
        self._cluster.network.mend()

    def _pause(self) -> None:
        member = self._any(up=True)
        if member is not None:
            member.pause(int(self._rng.expovariate(1.0) * 200_000))

    def _resign(self) -> None:
        leader = self._leader()
        if leader is not None:
            leader.tell(Resign("asked to"))

    def _power_in_call(self) -> None:
        member = self._any(up=True)
        if member is not None:
            member.fault(Faults(stop_after_call=self._rng.randrange(12)))

    def _failing_sync(self) -> None:
        member = self._any(up=True)
        if member is not None:
            member.fault(Faults(error_at_sync=self._rng.randrange(4)))

    def _full_disk(self) -> None:
        member = self._any(up=True)
        if member is not None:
            member.fault(Faults(full_at_write=self._rng.randrange(4)))

    def _checkpoint(self) -> None:
        member = self._any(up=True)
        if member is not None:
            member.checkpoint()

    def _rot(self) -> None:
        """At most one voter is damaged until it is whole again, and never without a majority."""
        cluster = self._cluster
        member = self._any(up=False)
        if member is None or len(cluster.voter_ids) < 3:
            return
        damaged = cluster.damaged
        if damaged is not None and not damaged.is_whole():
            return
        cluster.damaged = member if member.rot(self._rng) else None

    def _wall_step(self) -> None:
        member = self._any(up=True)
        if member is not None:
            member.clock.step_wall(self._rng.randint(-3_600_000, 3_600_000))

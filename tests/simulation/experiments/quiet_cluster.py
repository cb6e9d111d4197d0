"""A simulated cluster of production replicas in which nothing goes wrong but what a test does."""

from __future__ import annotations

from quorate.controller.requests import Answer, RequestContext
from quorum.errors import ErrorCode
from simulation.member import Member
from simulation.options import Options
from simulation.plan import FaultPlan
from simulation.population import Population
from simulation.seeded_random import SeededRandom
from simulation.settings import Settings
from simulation.trace import Trace
from statemachine.commands import InitProducerId

_STEP_US = 1_000
_CALM = FaultPlan(
    loss=0.0, duplication=0.0, delay_min_us=300, delay_max_us=1_500, straggle=0.0,
    disk_min_us=1_000, disk_max_us=8_000, disk_stall=0.0, fault_every_us=1, drift_per_mille=0,
)  # fmt: skip


class QuietCluster(Population):
    """All voters run from the beginning. Standing invariants watch every step."""

    def __init__(
        self,
        seed: int,
        settings: Settings,
        voters: tuple[int, ...],
        observers: tuple[int, ...] = (0,),
    ) -> None:
        root = SeededRandom(seed)
        super().__init__(root, Trace(is_kept=False), Options(voters=voters, observers=observers))
        self.plan = _CALM
        self.settings = settings
        self.run_observer.config = settings.quorum
        self.rng = SeededRandom(root.getrandbits(64))
        self.settle(root)
        for member in self.members.values():
            member.boot()
        # Time goes on where nothing else does.
        self._tick()

    def _tick(self) -> None:
        self.scheduler.after(100_000, self._tick)

    def pass_ms(self, milliseconds: int) -> None:
        """Let virtual time go by."""
        end_us = self.scheduler.now_us + 1_000 * milliseconds
        while self.scheduler.now_us < end_us:
            self.scheduler.step()

    def leader(self) -> Member | None:
        """Return the leader that accepts writes now."""
        for member in self.members.values():
            if member.replica is not None and member.replica.node.can_write:
                return member
        return None

    def write(self, within_ms: int) -> bool:
        """Ask for a producer until that is acknowledged; whether it was in time."""
        end_us = self.scheduler.now_us + 1_000 * within_ms
        answers: list[Answer] = []
        asked: tuple[Member, int] | None = None
        while self.scheduler.now_us < end_us:
            if answers and answers[-1].code == ErrorCode.NONE:
                return True
            leader = self.leader()
            is_open = asked is not None and asked[0].incarnation == asked[1] and not answers
            if leader is not None and (not is_open or asked != (leader, leader.incarnation)):
                asked = leader, leader.incarnation
                answers = []
                leader.serve(
                    "write",
                    lambda replica, answered=answers.append: replica.controller.submit(  # type: ignore[misc]  # bound now
                        InitProducerId(), RequestContext("quiet"), answered
                    ),
                )
            self.scheduler.after(_STEP_US, lambda: None)
            self.scheduler.step()
        return False

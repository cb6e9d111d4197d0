"""What every fault needs: the cluster, randomness, and ways to pick a victim."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from simulation.budget import Budget
from simulation.damaged_files import Change
from simulation.member import Member
from simulation.population import Population


class Site:
    """One per fault maker. Faults draw from ``rng`` only, so a seed repeats them."""

    def __init__(self, cluster: Population, budget: Budget, rng: random.Random) -> None:
        self.cluster = cluster
        self.budget = budget
        self.rng = rng

    def any(self, *, up: bool) -> Member | None:
        """Return a node that runs, or one that does not."""
        members = [each for each in self.cluster.members.values() if each.is_up == up]
        return self.rng.choice(members) if members else None

    def leader(self) -> Member | None:
        """Return a node that takes itself for the leader."""
        leaders = [
            each
            for each in self.cluster.members.values()
            if each.replica is not None and each.replica.node.is_leader
        ]
        return self.rng.choice(leaders) if leaders else None

    def later(self, delay_us: int, call: Callable[..., None], *arguments: Any) -> None:
        """Continue a fault later, unless all faults have ended by then."""

        def act() -> None:
            if not self.cluster.is_healed:
                call(*arguments)

        self.cluster.scheduler.after(delay_us, act)

    def some_us(self, mean_us: int) -> int:
        """Return a time around ``mean_us``, seldom much longer."""
        return 1 + int(self.rng.expovariate(1.0) * mean_us)

    def record_damage(self, member: Member, change: Change) -> None:
        """Record that a file is not what its node wrote: its consequences are no violation."""
        cluster = self.cluster
        if change.loses or change.kind == "digest":
            cluster.run_observer.is_chain_damaged = True
        if change.loses:
            cluster.happened("records-damaged")
            cluster.run_observer.damaged(member.id)
            self.budget.spend(member)

"""Injects faults into a cluster, drawn by the weights of the profile."""

from __future__ import annotations

import random

from simulation.budget import Budget
from simulation.faults.site import Site
from simulation.faults.table import ACTS
from simulation.population import Population


class FaultMaker:
    """Injects or heals one fault per turn, until ``Cluster.heal``."""

    def __init__(self, cluster: Population, budget: Budget, rng: random.Random) -> None:
        self._cluster = cluster
        self._rng = rng
        self._site = Site(cluster, budget, rng)
        acts = cluster.options.faults.acts
        self._names = list(acts)
        self._weights = list(acts.values())
        self._later()

    def _later(self) -> None:
        every = self._cluster.plan.fault_every_us
        self._cluster.scheduler.after(1 + int(self._rng.expovariate(1.0) * every), self._act)

    def _act(self) -> None:
        if self._cluster.is_healed:
            return
        if self._cluster.are_faults_suspended():
            self._later()
            return
        name = self._rng.choices(self._names, self._weights)[0]
        if ACTS[name](self._site):
            self._cluster.happened(name)
        self._later()

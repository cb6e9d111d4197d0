"""A simulated cluster: shape and settings from a seed, nodes, network, clients, one clock."""

from __future__ import annotations

from quorate.sim.budget import Budget
from quorate.sim.dice import Dice
from quorate.sim.faults import FaultMaker
from quorate.sim.memory_filesystem import KEEP_ALL
from quorate.sim.options import Options
from quorate.sim.population import Population
from quorate.sim.recording import Readers, Recording
from quorate.sim.trace import Trace
from quorate.sim.watchers import Watchers
from quorate.sim.workload import Clients


class Cluster(Population):
    """Everything of one run. The root random generator decides; nothing else is random."""

    def __init__(self, seed: int, trace: Trace, options: Options) -> None:
        root = Dice(seed)
        super().__init__(root, trace, options)
        self.recording = Recording(self, seed)
        self.clients = Clients(self, self.recording, Dice(root.getrandbits(64)), root.randint(1, 4))
        self.settle(root)
        self.budget = Budget(self)
        self._faults = Dice(root.getrandbits(64))
        self._readers = Readers(
            self, self.recording, Dice(root.getrandbits(64)), self.clients.has_stopped
        )
        self.watchers = Watchers(self, self.recording, Dice(root.getrandbits(64)))

    def start(self) -> None:
        """Start every node, the clients and the fault maker."""
        self.note(0, "cluster", f"voters={self.voter_ids} nodes={len(self.members)}")
        for member in self.members.values():
            member.boot()
        self.clients.start()
        self._readers.start()
        self.watchers.start()
        FaultMaker(self, self.budget, self._faults)

    def heal(self) -> None:
        """End all faults: every node runs, every link carries."""
        self.is_healed = True
        self.network.mend()
        self.note(0, "heal", "")
        for member in self.members.values():
            member.disk.heal()
            if member.is_stopping:
                member.crash("kill", KEEP_ALL, is_refusing=True)
            if not member.is_up:
                member.boot()

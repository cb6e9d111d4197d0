"""A simulated cluster: shape and settings from a seed, nodes, network, clients, one clock."""

from __future__ import annotations

from dataclasses import replace

from simulation.budget import Budget
from simulation.consumers import consumers_of
from simulation.conversions import Conversions
from simulation.fault_maker import FaultMaker
from simulation.memory_filesystem import KEEP_ALL
from simulation.options import Options
from simulation.population import Population
from simulation.processors import KINDS, SHARE, Processors
from simulation.recording import Readers, Recording
from simulation.seeded_random import SeededRandom
from simulation.strangers import Strangers
from simulation.trace import Trace
from simulation.watchers import watchers_of
from simulation.workload import Clients

KAFKA_SHARE = 0.3
"""Share of the seeds whose records are in Kafka's codec."""


class Cluster(Population):
    """All parts of one run. Its root random generator is the only source of randomness."""

    def __init__(self, seed: int, trace: Trace, options: Options) -> None:
        root = SeededRandom(seed)
        super().__init__(root, trace, options)
        # Drawn apart from the root, so that every other number of a seed is the same in both
        # codecs.
        is_native = SeededRandom(f"codec of {seed}").random() >= KAFKA_SHARE
        chunk_bytes = options.faults.chunk_bytes
        quorum = self.settings.quorum
        if chunk_bytes:
            quorum = replace(quorum, snapshot_chunk_bytes=chunk_bytes)
        self.settings = replace(self.settings, uses_native_codec=is_native, quorum=quorum)
        self.recording = Recording(self, seed)
        self.clients = Clients(
            self, self.recording, SeededRandom(root.getrandbits(64)), root.randint(1, 4)
        )
        self.settle(root)
        self.budget = Budget(self)
        self._faults = SeededRandom(root.getrandbits(64))
        self._readers = Readers(
            self, self.recording, SeededRandom(root.getrandbits(64)), self.clients.has_stopped
        )
        history, conversions = self.recording.history, Conversions()
        self.watchers = watchers_of(self, history, SeededRandom(root.getrandbits(64)), conversions)
        self._strangers = Strangers(self, self.clients, SeededRandom(root.getrandbits(64)))
        self.consumers = consumers_of(
            self, history, SeededRandom(root.getrandbits(64)), conversions
        )

        # Drawn apart from the root, so that every other number of a seed stays the same.
        apart = SeededRandom(f"processors of {seed}")
        kind = SeededRandom(f"kind of the processors of {seed}").choice(KINDS)
        self.processors = Processors(self, apart, kind) if apart.random() < SHARE else None

    def start(self) -> None:
        """Start every node, the clients and the fault maker."""
        self.note(0, "cluster", f"voters={self.voter_ids} nodes={len(self.members)}")
        for member in self.members.values():
            member.boot()
        self.clients.start()
        self._readers.start()
        self.watchers.start()
        self._strangers.start()
        self.consumers.start()
        if self.processors is not None:
            self.processors.start()
        FaultMaker(self, self.budget, self._faults)

    def end_faults(self) -> None:
        """Stop all faults and restore every link. Nodes that are down stay down."""
        self.is_healed = True
        self.network.heal()
        self.note(0, "heal", "")
        for member in self.members.values():
            member.heal()
            if member.is_stopping or member.lacks:
                member.crash("kill", KEEP_ALL, is_refusing=True)
            elif member.paused_until_us > self.scheduler.now_us:
                member.wake()
            member.lacks = frozenset()

    def heal(self) -> None:
        """End all faults: every node runs and every link delivers."""
        self.end_faults()
        for member in self.members.values():
            if not member.is_up:
                member.boot()

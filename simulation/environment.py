"""What every part of a simulated cluster shares, without the nodes themselves."""

from __future__ import annotations

from abc import ABC, abstractmethod

from quorum.types import NO_NODE, Endpoint, NodeId, ReplicaKey, Uuid, Voter
from simulation.ages import Ages
from simulation.counts import Counts
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.table import watch
from simulation.options import Options
from simulation.plan import FaultPlan
from simulation.relays import ALIAS, Relays
from simulation.scheduler import Scheduler
from simulation.seeded_random import SeededRandom
from simulation.settings import Settings
from simulation.trace import Trace

NOWHERE = -50
"""Ids from here down to the relays' aliases are addresses of removed machines."""
STRANGER: NodeId = 900
"""The node id of a process that is not a member (``stranger``)."""
ANONYMOUS: NodeId = -5_000
"""The sender id of a unary call, as the transport numbers them."""
CLUSTER_ID = "c2ltdWxhdGVkLWNsdXN0ZQ"


def endpoints_of(node_id: NodeId) -> tuple[Endpoint, ...]:
    """Return where peers and clients reach a node; voters records name the first one only."""
    return Endpoint("CONTROLLER", f"n{node_id}", 9093), Endpoint("CLIENT", f"n{node_id}", 9092)


class Environment(ABC):
    """The clock, counters, settings, observer of invariants and trace of a run.

    The order of draws from ``root`` is part of what a seed means.
    """

    def __init__(self, root: SeededRandom, trace: Trace, options: Options) -> None:
        self.cluster_id = CLUSTER_ID
        self.options = options
        self.scheduler = Scheduler()
        self.counts = Counts()
        self.trace = trace
        self.is_healed = False
        self.plan = FaultPlan.draw(root, options.faults)
        self.settings = Settings.draw(root)
        self.run_observer: RunObserver = watch()
        self.run_observer.config = self.settings.quorum
        self.run_observer.true_ms = lambda: self.scheduler.now_us // 1000
        self.ages = Ages()
        self._disk_rng = SeededRandom(root.getrandbits(64))
        voter_count = root.choices((1, 2, 3, 4, 5), (1, 1, 8, 2, 4))[0]
        observer_count = root.choices((0, 1, 2, 3), (6, 2, 1, 1))[0]
        if options.voters:
            voter_count = root.choice(options.voters)
        if options.observers or options.faults.observers:
            observer_count = root.choice(options.observers or options.faults.observers)
        self.voter_ids = tuple(range(1, voter_count + 1))
        self.observer_ids = tuple(range(11, 11 + observer_count))
        self.bootstrap_voters = tuple(
            Voter(ReplicaKey(each, directory_id_of(each)), endpoints_of(each)[:1])
            for each in self.voter_ids
        )
        self.bootstrap_servers = tuple(-2 - place for place in range(len(self.voter_ids)))
        """Addresses of all initial voters: the bootstrap servers of observers and new disks."""
        self.relays = Relays({})
        self._suspended_until_us = 0

    def servers_of(self, node_id: NodeId) -> tuple[NodeId, ...]:
        """Return the configured bootstrap servers of a node."""
        del node_id
        return self.bootstrap_servers

    def node_behind(self, peer: NodeId) -> NodeId:
        """Return the node at an address known by a negative id; -2 is the first voter.

        ``NO_NODE`` for an address of a removed machine.
        """
        if peer <= ALIAS:
            return ALIAS - peer
        if peer <= NOWHERE:
            return NO_NODE
        voters = self.voter_ids
        return voters[(-2 - peer) % len(voters)] if peer < 0 else peer

    @staticmethod
    def is_foreign(peer: NodeId) -> bool:
        """Return whether the peer is not a member: a stranger, or the sender of a unary call."""
        return peer == STRANGER or peer <= ANONYMOUS

    def disk_delay(self) -> int:
        """Return how long the next disk pass takes, in microseconds."""
        plan, rng = self.plan, self._disk_rng
        delay = rng.randint(plan.disk_min_us, plan.disk_max_us)
        if plan.disk_stall and not self.is_healed and rng.random() < plan.disk_stall:
            delay *= rng.randint(2, 100)
            self.counts.stalls += 1
        return delay

    def suspend_faults(self, for_us: int) -> None:
        """Suspend faults for a while, or until a node is disqualified."""
        self._suspended_until_us = self.scheduler.now_us + for_us

    def are_faults_suspended(self) -> bool:
        """Return whether faults are suspended."""
        return self.scheduler.now_us < self._suspended_until_us

    def happened(self, act: str) -> None:
        """Count a fault."""
        self.counts.acts[act] = self.counts.acts.get(act, 0) + 1

    def note(self, node_id: NodeId, kind: str, detail: str) -> None:
        """Add a line to the trace."""
        if not self.trace.is_kept:
            return
        state = self.state_of(node_id) if node_id else ""
        self.trace.add(self.counts.events, self.scheduler.now_us, node_id, kind, detail, state)

    @abstractmethod
    def state_of(self, node_id: NodeId) -> str:
        """Return a node's state for the trace."""


def directory_id_of(node_id: NodeId) -> Uuid:
    """Return the directory id of a node's first disk."""
    return bytes([128 + node_id]) * 16

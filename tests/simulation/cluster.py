"""A simulated cluster: shape and settings from a seed, nodes, network, clients, one clock."""

from __future__ import annotations

import random
from dataclasses import dataclass, fields

from quorum.config import QuorumConfig
from quorum.log.config import LogConfig
from quorum.types import Endpoint, NodeId, ReplicaKey, Voter
from snapshot.config import SnapshotConfig
from tests.simulation.faults import FaultMaker, FaultPlan
from tests.simulation.invariants.table import watch
from tests.simulation.invariants.witness import Witness
from tests.simulation.member import Member
from tests.simulation.network import Network
from tests.simulation.scheduler import Scheduler
from tests.simulation.trace import Trace
from tests.simulation.workload import Clients

CLUSTER_ID = "c2ltdWxhdGVkLWNsdXN0ZQ"


@dataclass(slots=True)
class Counts:
    """How often what happened: a run in which nothing happened proves nothing."""

    events: int = 0
    leaders: int = 0
    truncations: int = 0
    installs: int = 0
    checkpoints: int = 0
    crashes: int = 0
    lossy_crashes: int = 0
    duplicates: int = 0
    acknowledged: int = 0
    reads: int = 0
    lost: int = 0
    duplicated: int = 0
    cut: int = 0
    refused: int = 0
    rotted: int = 0
    quarantines: int = 0

    def add(self, other: Counts) -> None:
        """Sum up."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    def __str__(self) -> str:
        return " ".join(f"{each.name}={getattr(self, each.name)}" for each in fields(self))


@dataclass(frozen=True, slots=True)
class Settings:
    """How the nodes are configured, alike on all."""

    quorum: QuorumConfig
    log: LogConfig
    snapshot: SnapshotConfig
    idle_ms: int

    @staticmethod
    def draw(rng: random.Random) -> Settings:
        """Small sizes and short times, so that everything happens within a few thousand events."""
        election = rng.choice((60, 150))
        return Settings(
            QuorumConfig(
                election_timeout_ms=election,
                fetch_timeout_ms=2 * election,
                election_backoff_max_ms=election,
                fetch_max_wait_ms=rng.choice((10, 40)),
                fetch_bytes_max=rng.choice((200, 1_000, 1 << 20)),
                snapshot_chunk_bytes=rng.choice((150, 1_000, 1 << 20)),
                request_timeout_ms=rng.choice((50, 200)),
                retry_backoff_ms=5,
                lost_leader_jitter_ms=20,
                lost_leader_retry_ms=30,
                observer_session_ms=1_000,
                start_offset_lag_max_ms=rng.choice((50, 300)),
                high_watermark_store_ms=rng.choice((20, 200)),
            ),
            LogConfig(
                segment_bytes=rng.choice((600, 3_000, 1 << 20)),
                index_interval_bytes=rng.choice((100, 4_096)),
            ),
            SnapshotConfig(
                min_changed_records_ratio=rng.choice((0.0, 0.5)),
                max_bytes_between=rng.choice((400, 1_500, 6_000)),
                lease_ms=300,
            ),
            rng.choice((0, 100)),
        )


class Cluster:
    """Everything of one run. The root random generator decides; nothing else is random."""

    def __init__(self, seed: int, trace: Trace) -> None:
        root = random.Random(seed)
        self.cluster_id = CLUSTER_ID
        self.scheduler = Scheduler()
        self.counts = Counts()
        self.trace = trace
        self.is_healed = False
        self.plan = FaultPlan.draw(root)
        self.settings = Settings.draw(root)
        self.witness: Witness = watch()
        self._disk_rng = random.Random(root.getrandbits(64))
        voter_count = root.choices((1, 2, 3, 4, 5), (1, 1, 8, 2, 4))[0]
        observer_count = root.choices((0, 1, 2, 3), (6, 2, 1, 1))[0]
        self.voter_ids = tuple(range(1, voter_count + 1))
        self.network = Network(self, random.Random(root.getrandbits(64)))
        self.clients = Clients(self, random.Random(root.getrandbits(64)), root.randint(1, 4))
        voters = tuple(
            Voter(
                ReplicaKey(each, _directory_id(each)), (Endpoint("CONTROLLER", f"n{each}", 9093),)
            )
            for each in self.voter_ids
        )
        self.members: dict[NodeId, Member] = {}
        for node_id in (*self.voter_ids, *range(11, 11 + observer_count)):
            self.members[node_id] = Member(
                self,
                node_id,
                _directory_id(node_id),
                voters if node_id in self.voter_ids else (),
                random.Random(root.getrandbits(64)),
            )
        self.damaged: Member | None = None
        """Whose disk has lost something, and may not have all of it back."""
        self._faults = random.Random(root.getrandbits(64))

    def start(self) -> None:
        """Start every node, the clients and the fault maker."""
        self.note(0, "cluster", f"voters={self.voter_ids} nodes={len(self.members)}")
        for member in self.members.values():
            member.boot()
        self.clients.start()
        FaultMaker(self, self._faults)

    def heal(self) -> None:
        """End all faults: every node runs, every link carries."""
        self.is_healed = True
        self.network.mend()
        self.note(0, "heal", "")
        for member in self.members.values():
            member.heal_disk()
            if not member.is_up:
                member.boot()

    def disk_delay(self) -> int:
        """How long the next pass of a disk takes."""
        plan, rng = self.plan, self._disk_rng
        delay = rng.randint(plan.disk_min_us, plan.disk_max_us)
        if plan.disk_stall and not self.is_healed and rng.random() < plan.disk_stall:
            delay *= rng.randint(2, 100)
        return delay

    def count_event(self) -> None:
        """A message was delivered, a disk pass completed, or a client took a step."""
        self.counts.events += 1

    def note(self, node_id: NodeId, kind: str, detail: str) -> None:
        """Add a line to the trace."""
        state = self.members[node_id].state() if node_id else ""
        self.trace.add(self.counts.events, self.scheduler.now_us, node_id, kind, detail, state)


def _directory_id(node_id: NodeId) -> bytes:
    return bytes([128 + node_id]) * 16

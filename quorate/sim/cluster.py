"""A simulated cluster: shape and settings from a seed, nodes, network, clients, one clock."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, fields, replace

from quorate.sim.ages import Ages
from quorate.sim.budget import Budget
from quorate.sim.dice import Dice
from quorate.sim.faults import FaultMaker
from quorate.sim.invariants.table import watch
from quorate.sim.invariants.witness import Witness
from quorate.sim.member import Member
from quorate.sim.memory_filesystem import KEEP_ALL
from quorate.sim.network import Network
from quorate.sim.options import Options
from quorate.sim.plan import FaultPlan
from quorate.sim.recording import Readers, Recording
from quorate.sim.relays import Relays, hurried
from quorate.sim.scheduler import Scheduler
from quorate.sim.trace import Trace
from quorate.sim.watchers import Watchers
from quorate.sim.workload import Clients
from quorum.config import QuorumConfig
from quorum.log.config import LogConfig
from quorum.types import Endpoint, NodeId, ReplicaKey, Voter
from snapshot.config import SnapshotConfig

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
    quarantines: int = 0
    straggled: int = 0
    cut_from_clients: int = 0
    stalls: int = 0
    refused_starts: int = 0
    regressions: int = 0
    voter_changes: int = 0
    barred: int = 0
    found_out: int = 0
    id_blocks: int = 0
    watch_states: int = 0
    watch_changes: int = 0
    watch_resumes: int = 0
    watch_restarts: int = 0
    watch_cut_off: int = 0
    relay_answers: int = 0
    relay_chains: int = 0
    relay_refusals: int = 0
    relay_reports: int = 0
    upstream_changes: int = 0
    copies_refused: int = 0
    hand_overs: int = 0
    acts: dict[str, int] = field(default_factory=dict)
    """Every act of harm that had something to be done to, by name."""

    def numbers(self) -> dict[str, int]:
        """Everything by name, acts among them."""
        plain = {name: getattr(self, name) for name in _COUNTED}
        return {**plain, **{name: self.acts[name] for name in sorted(self.acts)}}

    def add(self, other: Counts) -> None:
        """Sum up."""
        for name in _COUNTED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name, count in other.acts.items():
            self.acts[name] = self.acts.get(name, 0) + count

    def __str__(self) -> str:
        return " ".join(f"{name}={count}" for name, count in self.numbers().items())


_COUNTED = tuple(each.name for each in fields(Counts) if each.name != "acts")


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
                disk_stall_ms=4 * election,
                lost_leader_jitter_ms=20,
                lost_leader_retry_ms=30,
                standstill_ms=election // 4,
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

    def __init__(self, seed: int, trace: Trace, options: Options) -> None:
        root = Dice(seed)
        self.cluster_id = CLUSTER_ID
        self.options = options
        self.scheduler = Scheduler()
        self.counts = Counts()
        self.trace = trace
        self.is_healed = False
        self.plan = FaultPlan.draw(root, options.faults)
        self.settings = Settings.draw(root)
        self.witness: Witness = watch()
        self.witness.config = self.settings.quorum
        self.ages = Ages()
        self._disk_rng = Dice(root.getrandbits(64))
        voter_count = root.choices((1, 2, 3, 4, 5), (1, 1, 8, 2, 4))[0]
        observer_count = root.choices((0, 1, 2, 3), (6, 2, 1, 1))[0]
        if options.voters:
            voter_count = root.choice(options.voters)
        if options.observers or options.faults.observers:
            observer_count = root.choice(options.observers or options.faults.observers)
        self.voter_ids = tuple(range(1, voter_count + 1))
        self.network = Network(self, Dice(root.getrandbits(64)))
        self.clients = Clients(self, Dice(root.getrandbits(64)), root.randint(1, 4))
        self.bootstrap_voters = tuple(
            Voter(
                ReplicaKey(each, _directory_id(each)), (Endpoint("CONTROLLER", f"n{each}", 9093),)
            )
            for each in self.voter_ids
        )
        self.bootstrap_servers = tuple(-2 - place for place in range(len(self.voter_ids)))
        """The addresses of all initial voters, which observers and replaced disks are given."""
        observers = tuple(range(11, 11 + observer_count))
        self.relays = Relays({})
        if options.faults.relayed:
            self._lay_out_relays(random.Random(root.getrandbits(64)), observers)
        self.members: dict[NodeId, Member] = {}
        for node_id in (*self.voter_ids, *observers):
            self.members[node_id] = Member(
                self,
                node_id,
                _directory_id(node_id),
                self.bootstrap_voters if node_id in self.voter_ids else (),
                Dice(root.getrandbits(64)),
            )
            self.members[node_id].disk.on_bite = self._call_failed
        self._hushed_until_us = 0
        self.budget = Budget(self)
        self._faults = Dice(root.getrandbits(64))
        self.recording = Recording(self, seed)
        self._readers = Readers(self, self.recording, Dice(root.getrandbits(64)))
        self.watchers = Watchers(self, Dice(root.getrandbits(64)))

    def _lay_out_relays(self, rng: random.Random, observers: tuple[NodeId, ...]) -> None:
        share = rng.choice(self.options.faults.relayed)
        self.relays = Relays.draw(rng, observers, share)
        quorum = hurried(self.settings.quorum, rng)
        self.settings = replace(self.settings, quorum=quorum)

    def start(self) -> None:
        """Start every node, the clients and the fault maker."""
        self.note(0, "cluster", f"voters={self.voter_ids} nodes={len(self.members)}")
        for member in self.members.values():
            member.boot()
        self.clients.start()
        self._readers.start()
        self.watchers.start()
        FaultMaker(self, self._faults)

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

    def disk_delay(self) -> int:
        """How long the next pass of a disk takes."""
        plan, rng = self.plan, self._disk_rng
        delay = rng.randint(plan.disk_min_us, plan.disk_max_us)
        if plan.disk_stall and not self.is_healed and rng.random() < plan.disk_stall:
            delay *= rng.randint(2, 100)
            self.counts.stalls += 1
        return delay

    def hush(self, for_us: int) -> None:
        """Do no harm for a while, or until somebody is barred."""
        self._hushed_until_us = self.scheduler.now_us + for_us

    def is_hushed(self) -> bool:
        """Whether the fault maker has to wait."""
        return self.scheduler.now_us < self._hushed_until_us

    def happened(self, act: str) -> None:
        """Count an act of harm."""
        self.counts.acts[act] = self.counts.acts.get(act, 0) + 1

    def _call_failed(self, kind: str) -> None:
        """A fault of a disk made a call fail."""
        self.happened(f"failed-{kind}")

    def count_event(self) -> None:
        """A message was delivered, a disk pass completed, or a client took a step."""
        self.counts.events += 1

    def note(self, node_id: NodeId, kind: str, detail: str) -> None:
        """Add a line to the trace."""
        if not self.trace.is_kept:
            return
        state = self.members[node_id].state() if node_id else ""
        self.trace.add(self.counts.events, self.scheduler.now_us, node_id, kind, detail, state)


def _directory_id(node_id: NodeId) -> bytes:
    return bytes([128 + node_id]) * 16

"""Measure our cluster and the peers in turn, while all of them run.

Alternating makes other work on the machine affect all systems alike.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from bench.failover import measure_failover, measure_peer_failover
from bench.host import host_share
from bench.peers.etcd import Etcd
from bench.peers.go_load import load_command
from bench.peers.hashicorp_raft import HashicorpRaft
from bench.peers.installed import has_programs
from bench.peers.kafka import Kafka
from bench.peers.load_program import Kind, Load, Place, Row, run_load_program
from bench.peers.peer import Peer
from bench.peers.processes import PeerError
from bench.peers.zookeeper import ZooKeeper
from bench.quorum_under_load import run_load, start_cluster
from bench.rounds import Round, measure_rounds, summarise
from bench.watch_fan_out import resident_mib
from quorate.demo.local_cluster import LocalCluster

_ERROR_CHARACTERS_MAX = 500
_OURS = "quorate"
PEERS: dict[str, type[Peer]] = {each.name: each for each in (Etcd, ZooKeeper, Kafka, HashicorpRaft)}
SETTINGS = {"snapshot.max_bytes_between": 8 << 20, "snapshot.min_changed_records_ratio": 0.1}
"""Checkpoints are on, with thresholds small enough that every run includes some."""
READS = (
    (Kind.LINEARIZABLE, Place.LEADER),
    (Kind.LINEARIZABLE, Place.FOLLOWER),
    (Kind.LOCAL, Place.LEADER),
)
_LEADER_SECONDS_MAX = 30.0
_IDLE_SECONDS = 6.0
"""Pause before the memory of idle nodes is read: what their start needed is unmapped then."""


@contextmanager
def scratch(parent: Path) -> Iterator[Path]:
    """A folder on the disk to measure, removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="quorate-bench-", dir=parent) as name:
        yield Path(name)


class Systems:
    """Three nodes of each system, started by the constructor and stopped by ``stack``."""

    def __init__(
        self,
        folder: Path,
        peers: Sequence[str],
        stack: ExitStack,
        *,
        seconds: float,
        warm_up_seconds: float,
    ) -> None:
        self._seconds = seconds
        self._warm_up_seconds = warm_up_seconds
        self._run = 0
        self._folder = folder
        self._cluster = LocalCluster(stack.enter_context(scratch(folder)), settings=SETTINGS)
        stack.callback(self._cluster.stop_all)
        start_cluster(self._cluster)
        self._peers: dict[str, Peer] = {}
        self.figures: dict[str, dict[str, Any]] = {}
        """The figures of the peers by name, or why one was ``skipped`` or ``failed``."""
        for name in peers:
            self._start_peer(name, stack)

    def _start_peer(self, name: str, stack: ExitStack) -> None:
        system = PEERS[name]
        self.figures[name] = {}
        if not system.is_installed():
            self.figures[name]["skipped"] = f"not installed; bench/peers/install {name} builds it"
            return
        try:
            peer = system(stack.enter_context(scratch(self._folder)))
        except PeerError as error:
            self.figures[name]["skipped"] = str(error)
            return
        stack.callback(peer.close)
        self._peers[name] = peer

    def idle(self) -> dict[str, float]:
        """Return the memory of the largest of our nodes, before any load."""
        time.sleep(_IDLE_SECONDS)
        most = max(resident_mib(node) for node in self._cluster.nodes.values())
        return {"resident_mb": most * (1 << 20) / 1e6}

    def writes(self, writer_counts: Sequence[int], rounds: int) -> Iterator[Row]:
        """Yield our row for each writer count; the peers' rows go into ``figures``."""
        for count in writer_counts:
            yield self._measure("writes", Kind.WRITE, Place.LEADER, count, rounds)

    def reads(self, readers: int, rounds: int) -> Iterator[Row]:
        """Yield our row for each level and node; none without the load program in Go."""
        if has_programs("quorateload"):
            for kind, place in READS:
                yield self._measure("reads", kind, place, readers, rounds)

    def watchers(self, watchers: int, rounds: int) -> Iterator[Row]:
        """Yield our row of one writer under watchers; none without the load program in Go."""
        if has_programs("quorateload"):
            yield self._measure("watchers", Kind.WATCH, Place.LEADER, watchers, rounds)

    def _measure(self, part: str, kind: Kind, place: Place, clients: int, rounds: int) -> Row:
        load = Load(kind, place, clients, self._seconds, self._warm_up_seconds)
        found = summarise(measure_rounds(partial(self._round, load), rounds), _OURS)
        for name, row in found.items():
            row["kind"], row["place"] = kind.value, place.value
            if name != _OURS:
                self.figures[name].setdefault(part, []).append(row)
        return found[_OURS]

    def _round(self, load: Load) -> Round:
        self._run += 1
        own = self._own_writes if load.kind is Kind.WRITE else self._own_program
        found: dict[str, Row] = {_OURS: _watched(partial(own, load))}
        for name, peer in list(self._peers.items()):
            if (load.kind, load.place) not in peer.loads:
                continue
            try:
                found[name] = _watched(partial(peer.load, load))
            except PeerError as error:
                # Omitted from the next rounds.
                del self._peers[name]
                self.figures[name]["failed"] = str(error)[-_ERROR_CHARACTERS_MAX:]
        return found

    def _own_writes(self, load: Load) -> Row:
        """Through our client library, with a check that every write was durable."""
        return run_load(
            self._cluster,
            load.clients,
            run=self._run,
            seconds=load.seconds,
            warm_up_seconds=load.warm_up_seconds,
        ).as_row()

    def _own_program(self, load: Load) -> Row:
        """By the load program in Go, so that no client's language is what differs."""
        nodes = list(self._cluster.nodes.values())
        leader = self._leader()
        number = leader if load.place is Place.LEADER else (leader + 1) % len(nodes)
        command = load_command("quorateload", load, load.kind, nodes[number].address)
        pids = {i: node.process.pid for i, node in enumerate(nodes) if node.process is not None}
        return run_load_program(command, pids, leader)

    def _leader(self) -> int:
        deadline = time.monotonic() + _LEADER_SECONDS_MAX
        while time.monotonic() < deadline:
            for number, node in enumerate(self._cluster.nodes.values()):
                if self._cluster.metric(node, "quorate_raft_can_write") == 1:
                    return number
        raise PeerError("Quorate has no leader")

    def failover(self, kills: int) -> list[float]:
        """Return milliseconds to our next acknowledgement; the peers' go into ``figures``."""
        for name, peer in self._peers.items():
            try:
                times = measure_peer_failover(peer, rounds=kills)
            except (PeerError, TimeoutError) as error:
                self.figures[name]["failover_skipped"] = str(error)
            else:
                self.figures[name]["failover"] = times
        return [each.ms for each in measure_failover(self._cluster, rounds=kills)]


def _watched(load: Callable[[], Row]) -> Row:
    with host_share() as share:
        row = load()
    return {**row, "stolen": share.stolen}

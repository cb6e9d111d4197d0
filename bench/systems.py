"""Measure our cluster and the peers in turn, while all of them run.

Alternating makes other work on the machine affect all systems alike.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from bench.failover import measure_failover, measure_peer_failover
from bench.host import host_share
from bench.peers.etcd import Etcd
from bench.peers.processes import PeerError
from bench.peers.zookeeper import ZooKeeper
from bench.quorum_under_load import run_load, start_cluster
from bench.rounds import Round, Row, measure_rounds, summarise
from quorate.demo.local_cluster import LocalCluster

_ERROR_CHARACTERS_MAX = 500
_OURS = "quorate"
PEERS: dict[str, type[Etcd] | type[ZooKeeper]] = {Etcd.name: Etcd, ZooKeeper.name: ZooKeeper}
SETTINGS = {"snapshot.max_bytes_between": 8 << 20, "snapshot.min_changed_records_ratio": 0.1}
"""Checkpoints are on, with thresholds small enough that every run includes some."""


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
        self._durations = {"seconds": seconds, "warm_up_seconds": warm_up_seconds}
        self._run = 0
        self._folder = folder
        self._cluster = LocalCluster(stack.enter_context(scratch(folder)), settings=SETTINGS)
        stack.callback(self._cluster.stop_all)
        start_cluster(self._cluster)
        self._peers: dict[str, Etcd | ZooKeeper] = {}
        self.figures: dict[str, dict[str, Any]] = {}
        """The figures of the peers by name, or why one was ``skipped`` or ``failed``."""
        for name in peers:
            self._start_peer(name, stack)

    def _start_peer(self, name: str, stack: ExitStack) -> None:
        system = PEERS[name]
        self.figures[name] = {}
        if not system.is_installed():
            self.figures[name]["skipped"] = "not installed"
            return
        try:
            peer = system(stack.enter_context(scratch(self._folder)))
        except PeerError as error:
            self.figures[name]["skipped"] = str(error)
            return
        stack.callback(peer.close)
        self._peers[name] = peer

    def writes(self, writer_counts: Sequence[int], rounds: int) -> list[Row]:
        """Return our row for each writer count; the peers' rows go into ``figures``."""
        ours: list[Row] = []
        for writers in writer_counts:
            found = summarise(measure_rounds(partial(self._round, writers), rounds), _OURS)
            ours.append(found.pop(_OURS))
            for name, row in found.items():
                self.figures[name].setdefault("writes", []).append(row)
        return ours

    def _round(self, writers: int) -> Round:
        self._run += 1
        found: dict[str, Row] = {_OURS: _watched(partial(self._our_load, writers))}
        for name, peer in list(self._peers.items()):
            try:
                found[name] = _watched(partial(peer.load, writers, **self._durations))
            except PeerError as error:
                # Omitted from the next rounds.
                del self._peers[name]
                self.figures[name]["failed"] = str(error)[-_ERROR_CHARACTERS_MAX:]
        return found

    def _our_load(self, writers: int) -> Row:
        return run_load(self._cluster, writers, run=self._run, **self._durations).as_row()

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

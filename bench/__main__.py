"""``python -m bench``: every figure of this machine, peers beside ours where they are installed.

Prints a table on standard error and one JSON object on standard output (or to ``--output``).
Exit code 1 when a run was refused because the disks did not see every commit.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.failover import measure_failover, measure_peer_failover
from bench.floors import measure_floors
from bench.image_load import measure_image_load
from bench.peers.etcd import Etcd
from bench.peers.processes import PeerError
from bench.peers.zookeeper import ZooKeeper
from bench.quorum_under_load import NotDurableError, run_load, start_cluster
from bench.read_rates import READERS, measure_reads
from bench.report import render
from bench.snapshot_transfer import measure_transfer
from quorate import __version__
from quorate.demo.local_cluster import LocalCluster

_ERROR_CHARACTERS_MAX = 500
PARTS = ("floors", "writes", "reads", "failover", "snapshot", "image")
PEERS: dict[str, type[Etcd] | type[ZooKeeper]] = {Etcd.name: Etcd, ZooKeeper.name: ZooKeeper}
SETTINGS = {"snapshot.max_bytes_between": 8 << 20, "snapshot.min_changed_records_ratio": 0.1}
"""Checkpoints are on, and small enough thresholds let some of them fall into every run."""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--peers", nargs="*", choices=list(PEERS), default=list(PEERS))
    parser.add_argument("--writers", nargs="+", type=int, default=[1, 16, 64, 256])
    parser.add_argument("--seconds", type=float, default=3.0, help="of each write measurement")
    parser.add_argument("--warm-up", type=float, default=1.0, help="seconds before each of them")
    parser.add_argument("--rounds", type=int, default=3, help="of each figure; the median counts")
    parser.add_argument("--kills", type=int, default=10, help="leaders killed for each p50")
    parser.add_argument("--records", type=int, default=200_000, help="in the loaded checkpoint")
    parser.add_argument("--snapshot-bytes", type=int, default=200_000_000)
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="on the disk to measure")
    parser.add_argument("--output", type=Path, help="write the JSON here")
    return parser.parse_args()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@contextmanager
def _folder(parent: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="quorate-bench-", dir=parent) as name:
        yield Path(name)


def _spread(values: Sequence[float], suffix: str = "") -> dict[str, object]:
    return {
        f"p50{suffix}": statistics.median(values),
        f"min{suffix}": min(values),
        f"max{suffix}": max(values),
        "all": [round(value, 3) for value in values],
    }


class _Systems:
    """Our cluster and the peers, all of them running, measured by turns.

    By turns, because other work on the machine then meets all of them alike.
    """

    def __init__(self, options: argparse.Namespace, stack: ExitStack) -> None:
        self._options = options
        self._run = 0
        folder = stack.enter_context(_folder(options.folder))
        self._cluster = LocalCluster(folder, settings=SETTINGS)
        stack.callback(self._cluster.stop_all)
        start_cluster(self._cluster)
        self._peers: dict[str, Etcd | ZooKeeper] = {}
        self.figures: dict[str, dict[str, Any]] = {}
        for name in options.peers:
            self._start_peer(name, stack)

    def _start_peer(self, name: str, stack: ExitStack) -> None:
        system = PEERS[name]
        self.figures[name] = {}
        if not system.is_installed():
            self.figures[name]["skipped"] = "not installed"
            return
        try:
            peer = system(stack.enter_context(_folder(self._options.folder)))
        except PeerError as error:
            self.figures[name]["skipped"] = str(error)
            return
        stack.callback(peer.close)
        self._peers[name] = peer

    def writes(self) -> list[dict[str, Any]]:
        """The median run of each writer count; those of the peers go into ``figures``."""
        ours: list[dict[str, Any]] = []
        for writers in self._options.writers:
            runs: dict[str, list[dict[str, Any]]] = {}
            for _ in range(self._options.rounds):
                runs.setdefault("", []).append(self._our_load(writers))
                for name in list(self._peers):
                    row = self._peer_load(name, writers)
                    if row is not None:
                        runs.setdefault(name, []).append(row)
            ours.append(_median_run(runs.pop("")))
            for name, rows in runs.items():
                self.figures[name].setdefault("writes", []).append(_median_run(rows))
        return ours

    def _our_load(self, writers: int) -> dict[str, Any]:
        self._run += 1
        return run_load(self._cluster, writers, run=self._run, **self._durations()).as_row()

    def _peer_load(self, name: str, writers: int) -> dict[str, Any] | None:
        """None when the peer failed; it is left out from then on."""
        try:
            return self._peers[name].load(writers, **self._durations())
        except PeerError as error:
            del self._peers[name]
            self.figures[name]["failed"] = str(error)[-_ERROR_CHARACTERS_MAX:]
            return None

    def _durations(self) -> dict[str, float]:
        return {"seconds": self._options.seconds, "warm_up_seconds": self._options.warm_up}

    def failover(self) -> dict[str, object]:
        """Ours; those of the peers go into ``figures``."""
        kills = self._options.kills
        for name, peer in self._peers.items():
            try:
                times = measure_peer_failover(peer, rounds=kills)
            except (PeerError, TimeoutError) as error:
                self.figures[name]["failover_skipped"] = str(error)
            else:
                self.figures[name]["failover"] = _spread(times, "_ms")
        return _spread(measure_failover(self._cluster, rounds=kills), "_ms")


def _median_run(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The run with the median rate, with the range of all."""
    rows = sorted(rows, key=lambda row: float(row["rate"]))
    return {**rows[len(rows) // 2], "rates": [round(float(row["rate"])) for row in rows]}


def _measure(options: argparse.Namespace) -> dict[str, Any]:
    figures: dict[str, Any] = {
        "version": __version__,
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "load_average_before": os.getloadavg()[0],
        "writes": [],
        "peers": {},
    }
    if "floors" in options.only:
        _say("measuring floors")
        figures["floors"] = _floors(options)
    if {"writes", "failover"} & set(options.only):
        with ExitStack() as stack:
            _say("starting three nodes of each system")
            systems = _Systems(options, stack)
            figures["peers"] = systems.figures
            if "writes" in options.only:
                _say("measuring writes")
                figures["writes"] = systems.writes()
            if "failover" in options.only:
                _say("measuring failover")
                figures["failover"] = systems.failover()
    if "reads" in options.only:
        _say("measuring reads")
        figures["reads"] = _reads(options)
    if "snapshot" in options.only:
        _say("measuring snapshot transfer")
        figures["snapshot"] = _snapshot(options)
    if "image" in options.only:
        _say("measuring image load")
        figures["image"] = _image(options)
    figures["load_average_after"] = os.getloadavg()[0]
    return figures


def _floors(options: argparse.Namespace) -> dict[str, float]:
    return asdict(measure_floors(options.folder, seconds=min(options.seconds, 2.0)))


def _reads(options: argparse.Namespace) -> list[dict[str, object]]:
    with _folder(options.folder) as folder:
        cluster = LocalCluster(folder, settings=SETTINGS)
        try:
            start_cluster(cluster)
            results = measure_reads(
                cluster, readers=READERS, seconds=options.seconds, warm_up_seconds=options.warm_up
            )
        finally:
            cluster.stop_all()
    return [asdict(each) for each in results]


def _snapshot(options: argparse.Namespace) -> dict[str, object]:
    results = measure_transfer(
        options.folder, size_bytes=options.snapshot_bytes, rounds=options.rounds
    )
    found = _spread([each.mb_per_second for each in results])
    found["file_write_mb_per_second"] = statistics.median(
        each.file_write_mb_per_second for each in results
    )
    return found


def _image(options: argparse.Namespace) -> dict[str, object]:
    results = measure_image_load(options.folder, records=options.records, rounds=options.rounds)
    found = _spread([each.records_per_second for each in results])
    # One thread does all of it: on a machine with other work this is the figure to compare.
    found["per_cpu_second"] = statistics.median(each.records_per_cpu_second for each in results)
    return found


def main() -> int:
    """Measure, report, and say by the exit code whether the figures count."""
    options = _arguments()
    try:
        figures = _measure(options)
    except NotDurableError as error:
        _say(f"refused: {error}")
        return 1
    _say(render(figures))
    text = json.dumps(figures, indent=2)
    if options.output is None:
        print(text)
    else:
        options.output.write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

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
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.failover import measure_failover, measure_peer_failover
from bench.floors import measure_floors
from bench.image_load import measure_image_load
from bench.peers.etcd import Etcd
from bench.peers.processes import PeerError
from bench.peers.zookeeper import ZooKeeper
from bench.quorum_under_load import NotDurableError, run_loads, start_cluster
from bench.report import render
from bench.snapshot_transfer import measure_transfer
from quorate import __version__
from quorate.demo.local_cluster import LocalCluster

PARTS = ("floors", "writes", "failover", "snapshot", "image")
PEERS: dict[str, type[Etcd] | type[ZooKeeper]] = {Etcd.name: Etcd, ZooKeeper.name: ZooKeeper}
SETTINGS = {"snapshot.max_bytes_between": 8 << 20, "snapshot.min_changed_records_ratio": 0.1}
"""Checkpoints are on, and small enough thresholds let some of them fall into every run."""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--peers", nargs="*", choices=list(PEERS), default=list(PEERS))
    parser.add_argument("--writers", nargs="+", type=int, default=[1, 16, 64, 256])
    parser.add_argument("--seconds", type=float, default=5.0, help="of each write measurement")
    parser.add_argument("--warm-up", type=float, default=1.5, help="seconds before each of them")
    parser.add_argument("--rounds", type=int, default=3, help="of the snapshot and image figures")
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


def _measure_ours(options: argparse.Namespace, figures: dict[str, Any]) -> None:
    with _folder(options.folder) as folder:
        cluster = LocalCluster(folder, settings=SETTINGS)
        try:
            start_cluster(cluster)
            counts = options.writers if "writes" in options.only else [1]
            loads = run_loads(
                cluster, counts, seconds=options.seconds, warm_up_seconds=options.warm_up
            )
            if "writes" in options.only:
                figures["writes"] = [each.as_row() for each in loads]
            if "failover" in options.only:
                times = measure_failover(cluster, rounds=options.kills)
                figures["failover"] = _spread(times, "_ms")
        finally:
            cluster.stop_all()


def _measure_peer(options: argparse.Namespace, name: str) -> dict[str, Any]:
    system = PEERS[name]
    if not system.is_installed():
        return {"skipped": "not installed"}
    found: dict[str, Any] = {}
    with _folder(options.folder) as folder:
        peer = None
        try:
            peer = system(folder)
            if "writes" in options.only:
                found["writes"] = [
                    peer.load(count, seconds=options.seconds, warm_up_seconds=options.warm_up)
                    for count in options.writers
                ]
            if "failover" in options.only:
                found["failover"] = _spread(
                    measure_peer_failover(peer, rounds=options.kills), "_ms"
                )
        except (PeerError, TimeoutError) as error:
            found["skipped"] = str(error)
        finally:
            if peer is not None:
                peer.close()
    return found


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
        _say("measuring quorate")
        _measure_ours(options, figures)
        for name in options.peers:
            _say(f"measuring {name}")
            figures["peers"][name] = _measure_peer(options, name)
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


def _snapshot(options: argparse.Namespace) -> dict[str, object]:
    results = measure_transfer(
        options.folder, size_bytes=options.snapshot_bytes, rounds=options.rounds
    )
    return _spread([each.mb_per_second for each in results])


def _image(options: argparse.Namespace) -> dict[str, object]:
    results = measure_image_load(options.folder, records=options.records, rounds=options.rounds)
    return _spread([each.records_per_second for each in results])


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

"""``python -m bench``: all figures of this machine, with the peer systems that are installed.

Prints a table on standard error and one JSON object on standard output (or to ``--output``).
Exit code 1 if a part failed, for instance because the disks did not sync every commit, or if the
fail-over took longer than ``--fail-over-p50-max`` or ``--fail-over-max``. The figures of the parts
that finished are printed anyway, and ``failed`` names the others with their errors.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import statistics
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from bench.build_form import build_form
from bench.failover_bounds import exceeded
from bench.floors import measure_floors
from bench.image_load import measure_image_load
from bench.parts import Parts
from bench.plots import draw
from bench.quorum_under_load import start_cluster
from bench.read_rates import READERS, measure_reads
from bench.report import render
from bench.scale import SIZES, measure_scale
from bench.snapshot_transfer import measure_transfer
from bench.systems import PEERS, SETTINGS, Systems, scratch
from quorate import __version__
from quorate.demo.local_cluster import LocalCluster

PARTS = ("floors", "writes", "reads", "watchers", "failover", "client-reads", "snapshot", "image")
BESIDE_PEERS = {"writes", "reads", "watchers", "failover"}
SCALE = "scale"
"""Measured only if it is named: it takes ten minutes and some gigabytes."""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=[*PARTS, SCALE], default=list(PARTS))
    parser.add_argument("--peers", nargs="*", choices=list(PEERS), default=list(PEERS))
    parser.add_argument("--writers", nargs="+", type=int, default=[1, 16, 64, 256])
    parser.add_argument("--readers", type=int, default=READERS)
    parser.add_argument("--watchers", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=3.0, help="length of a measurement")
    parser.add_argument("--warm-up", type=float, default=1.0, help="seconds before each of them")
    parser.add_argument("--rounds", type=int, default=5, help="undisturbed rounds per figure")
    parser.add_argument("--kills", type=int, default=10, help="leader kills per system")
    parser.add_argument(
        "--fail-over-p50-max", type=float, metavar="MS", help="fail if the p50 is above"
    )
    parser.add_argument("--fail-over-max", type=float, metavar="MS", help="fail if a time is above")
    parser.add_argument("--records", type=int, default=200_000, help="records in the checkpoint")
    parser.add_argument("--snapshot-bytes", type=int, default=200_000_000)
    parser.add_argument(
        "--partitions", nargs="+", type=int, default=list(SIZES), help="sizes of the part scale"
    )
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="on the disk to measure")
    parser.add_argument("--output", type=Path, help="write the JSON here")
    parser.add_argument("--plots", type=Path, metavar="FOLDER", help="draw the figures into it")
    options = parser.parse_args()
    bounds = (options.fail_over_p50_max, options.fail_over_max)
    if "failover" not in options.only and bounds != (None, None):
        parser.error("--fail-over-p50-max and --fail-over-max need the part failover")
    if options.plots is not None and importlib.util.find_spec("matplotlib") is None:
        parser.error("--plots needs matplotlib: pip install 'quorate[plots]' brings it")
    return options


def _announce(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _spread(values: Sequence[float], suffix: str = "") -> dict[str, object]:
    return {
        f"p50{suffix}": statistics.median(values),
        f"min{suffix}": min(values),
        f"max{suffix}": max(values),
        "all": [round(value, 3) for value in values],
    }


def _measure(options: argparse.Namespace) -> dict[str, Any]:
    parts = Parts(_announce)
    figures: dict[str, Any] = {
        "version": __version__,
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "load_average_before": os.getloadavg()[0],
        "writes": [],
        "peers": {},
        "failed": parts.failed,
    }
    if "floors" in options.only:
        with parts.part("floors"):
            _announce("measuring floors")
            figures["floors"] = _floors(options)
    if BESIDE_PEERS & set(options.only):
        _beside_peers(options, figures, parts)
    for part, text, measure in (
        ("client-reads", "reads by our client library", _reads),
        ("snapshot", "snapshot transfer", _snapshot),
        ("image", "image load", _image),
    ):
        if part in options.only:
            with parts.part(part):
                _announce(f"measuring {text}")
                figures[part.replace("-", "_")] = measure(options)
    if SCALE in options.only:
        figures["scale"] = {}
        with parts.part(SCALE):
            measure_scale(options.folder, options.partitions, _announce, figures["scale"])
    figures["load_average_after"] = os.getloadavg()[0]
    return figures


def _beside_peers(options: argparse.Namespace, figures: dict[str, Any], parts: Parts) -> None:
    wanted = [part for part in PARTS if part in BESIDE_PEERS and part in options.only]
    # All of them fail if our nodes do not start.
    with parts.part(*wanted), ExitStack() as stack:
        _announce("starting three nodes of each system")
        systems = Systems(
            options.folder,
            options.peers,
            stack,
            seconds=options.seconds,
            warm_up_seconds=options.warm_up,
        )
        figures["peers"] = systems.figures
        if "writes" in wanted:
            figures["idle"] = systems.idle()
        for part, text, measure in (
            ("writes", "writes", partial(systems.writes, options.writers, options.rounds)),
            ("reads", "reads", partial(systems.reads, options.readers, options.rounds)),
            (
                "watchers",
                "a writer under watchers",
                partial(systems.watchers, options.watchers, options.rounds),
            ),
        ):
            if part in wanted:
                # A list that fills: loads that finished stay when a later one fails.
                rows = figures[part] = []
                with parts.part(part):
                    _announce(f"measuring {text}")
                    rows.extend(measure())
        if "failover" in wanted:
            with parts.part("failover"):
                _announce("measuring failover")
                figures["failover"] = _spread(systems.failover(options.kills), "_ms")
            for peer in systems.figures.values():
                if "failover" in peer:
                    peer["failover"] = _spread(peer["failover"], "_ms")


def _floors(options: argparse.Namespace) -> dict[str, float]:
    return asdict(measure_floors(options.folder, seconds=min(options.seconds, 2.0)))


def _reads(options: argparse.Namespace) -> list[dict[str, object]]:
    with scratch(options.folder) as folder:
        cluster = LocalCluster(folder, settings=SETTINGS)
        try:
            start_cluster(cluster)
            results = measure_reads(
                cluster,
                readers=options.readers,
                seconds=options.seconds,
                warm_up_seconds=options.warm_up,
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
    # Single-threaded, so processor time is comparable on a machine with other work.
    found["per_cpu_second"] = statistics.median(each.records_per_cpu_second for each in results)
    return found


def main() -> int:
    """Measure and report; return the exit code."""
    options = _arguments()
    figures = {**build_form(), **_measure(options)}
    _announce(render(figures))
    text = json.dumps(figures, indent=2)
    if options.output is None:
        print(text)
    else:
        options.output.write_text(text + "\n")
    if options.plots is not None:
        for path in draw(figures, options.plots):
            _announce(f"drawn: {path}")
    broken = exceeded(
        figures.get("failover", {}).get("all", ()),
        p50_max_ms=options.fail_over_p50_max,
        longest_max_ms=options.fail_over_max,
    )
    for sentence in broken:
        _announce(sentence)
    return 1 if broken or figures.get("failed") else 0


if __name__ == "__main__":
    sys.exit(main())

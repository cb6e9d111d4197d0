"""``python -m bench.scrub_cost``: latency of one writer while the nodes scrub their files.

Three nodes run with the scrub at its default pace and without it, in turn. The pause between two
passes is the minimum, so a pass runs nearly all the time on all three nodes; by default the pause
is up to a day. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from bench.build_form import print_form
from bench.quorum_under_load import run_load, start_cluster
from quorate.config.sections import ScrubConfig
from quorate.demo.local_cluster import LocalCluster

FILLERS = 64
"""Writers that fill the log before the measurement."""
PAUSE_MS = 1000
READ_BYTES = "quorate_scrub_read_bytes_total"


@dataclass(slots=True)
class Cost:
    """Values of all rounds; the bytes read are the least of any node in a round."""

    p50_ms: list[float] = field(default_factory=list)
    p99_ms: list[float] = field(default_factory=list)
    read_bytes_per_second: list[float] = field(default_factory=list)

    def as_row(self) -> dict[str, float]:
        """Return the report row."""
        return {
            "p50_ms": round(statistics.median(self.p50_ms), 2),
            "p99_ms": round(statistics.median(self.p99_ms), 2),
            "read_bytes_per_second": round(min(self.read_bytes_per_second)),
        }


def measure(cost: Cost, folder: Path, pace: int, seconds: float, fill_seconds: float) -> None:
    """Measure one round on a new cluster."""
    settings = {
        "limits.disk_free_bytes_min": 0,
        "scrub.bytes_per_second": pace,
        "scrub.pause_ms": PAUSE_MS,
    }
    with tempfile.TemporaryDirectory(dir=folder) as home:
        cluster = LocalCluster(Path(home), settings=settings)
        try:
            start_cluster(cluster)
            run_load(cluster, FILLERS, seconds=fill_seconds, warm_up_seconds=0.0, run=1)
            nodes = list(cluster.nodes.values())
            before = [cluster.metric(node, READ_BYTES) or 0 for node in nodes]
            load = run_load(cluster, 1, seconds=seconds, warm_up_seconds=1.0, run=2).load
            after = [cluster.metric(node, READ_BYTES) or 0 for node in nodes]
        finally:
            cluster.stop_all()
    cost.p50_ms.append(load.p50_ms)
    cost.p99_ms.append(load.p99_ms)
    least = min(late - early for early, late in zip(before, after, strict=True))
    cost.read_bytes_per_second.append(least / (seconds + 1.0))


def main() -> int:
    """Alternate with and without scrub, so that other work on the machine affects both alike."""
    parser = argparse.ArgumentParser(prog="bench.scrub_cost", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0, help="length of a measurement")
    parser.add_argument("--fill-seconds", type=float, default=6.0)
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="on the disk to measure")
    arguments = parser.parse_args()
    print_form()
    costs = {"without": (0, Cost()), "scrubbing": (ScrubConfig().bytes_per_second, Cost())}
    for _ in range(arguments.rounds):
        for pace, cost in costs.values():
            measure(cost, arguments.folder, pace, arguments.seconds, arguments.fill_seconds)
    json.dump({name: cost.as_row() for name, (_, cost) in costs.items()}, sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())

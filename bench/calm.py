"""``python -m bench.calm --minutes 60``: no election under full load on contended processors.

Three nodes with default settings, more writers than they can serve, and one spinning process per
processor. No fault is injected. Exit code 1 if a node campaigned, asked for pre-votes or saw
another leadership term, or if too few writes were acknowledged for full load; else 0.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench.quorum_under_load import run_load, start_cluster
from quorate.demo.local_cluster import LocalCluster, LocalNode

CHUNK_SECONDS = 20.0
WRITERS = 64
WRITES_PER_SECOND_MIN = 50
"""Minimum rate of acknowledged writes; below it the load does not count as full."""
SETTINGS = {
    "limits.disk_free_bytes_min": 0,
    "snapshot.max_bytes_between": 8 << 20,
    "snapshot.min_changed_records_ratio": 0.1,
}
"""Quorum timers stay at their defaults; every run includes checkpoints and trims."""
_STOOD = 'quorate_raft_role_changes_total{state="%s"}'


@dataclass(frozen=True, slots=True)
class LeadershipTerm:
    """Election counters of one node. Equal before and after a run: no election."""

    epoch: int
    stood: int
    """Number of campaigns of the node, pre-votes included."""
    leader_changes: int


@dataclass(slots=True)
class Calm:
    """The result of a run."""

    minutes: float = 0.0
    writes: int = 0
    rates: list[int] = field(default_factory=list)
    worst_ms: float = 0.0
    load_average: float = 0.0
    elections: int = 0


def problems(seen: Calm) -> list[str]:
    """Return one sentence for each requirement that a run misses."""
    found = []
    if seen.elections:
        found.append(f"{seen.elections} elections, although no fault was injected")
    if seen.writes <= seen.minutes * 60 * WRITES_PER_SECOND_MIN:
        found.append(
            f"{seen.writes} writes in {seen.minutes:.1f} min, "
            f"not more than {WRITES_PER_SECOND_MIN} per second"
        )
    return found


def elections_between(
    before: Mapping[int, LeadershipTerm], after: Mapping[int, LeadershipTerm]
) -> int:
    """Return the number of campaigns; a node that only saw another's counts once."""
    return sum(
        max(1, after[each].stood - before[each].stood)
        for each in after
        if after[each] != before[each]
    )


def leadership_term_of(cluster: LocalCluster, node: LocalNode) -> LeadershipTerm:
    """Read the counters from the node's metrics."""

    def read(series: str) -> int:
        return int(cluster.metric(node, series) or 0)

    return LeadershipTerm(
        read("quorate_raft_epoch"),
        read(_STOOD % "prospective") + read(_STOOD % "candidate"),
        read("quorate_raft_leader_changes_total"),
    )


def _spin() -> None:
    while True:
        pass


@contextmanager
def contention(processes: int) -> Iterator[None]:
    """Run this many processes that only use processor time."""
    context = multiprocessing.get_context("spawn")
    spinning = [context.Process(target=_spin, daemon=True) for _ in range(processes)]
    for each in spinning:
        each.start()
    try:
        yield
    finally:
        for each in spinning:
            each.kill()
            each.join()


def measure_calm(folder: Path, *, minutes: float, writers: int, spinning: int) -> Calm:
    """Run the load for this long and count elections."""
    cluster = LocalCluster(folder, settings=SETTINGS)
    seen = Calm()
    try:
        start_cluster(cluster)
        before = {node.id: leadership_term_of(cluster, node) for node in cluster.nodes.values()}
        began = time.monotonic()
        run = 0
        with contention(spinning):
            while time.monotonic() - began < minutes * 60:
                run += 1
                row = run_load(
                    cluster, writers, run=run, seconds=CHUNK_SECONDS, warm_up_seconds=0.0
                ).load
                seen.writes += row.writes
                seen.rates.append(round(row.rate))
                seen.worst_ms = max(seen.worst_ms, row.max_ms)
                seen.load_average = max(seen.load_average, os.getloadavg()[0])
                after = {
                    node.id: leadership_term_of(cluster, node) for node in cluster.nodes.values()
                }
                seen.minutes = (time.monotonic() - began) / 60
                _announce(
                    f"{seen.minutes:.1f} min: {row.rate:.0f}/s, worst {row.max_ms:.0f} ms, {after}"
                )
                seen.elections = elections_between(before, after)
                if seen.elections:
                    break
    finally:
        cluster.stop_all()
    return seen


def _announce(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    """Measure and report; return 1 if there are ``problems``, listed on standard error."""
    parser = argparse.ArgumentParser(prog="bench.calm", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--writers", type=int, default=WRITERS)
    parser.add_argument("--spinning", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="on the disk to write to")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="quorate-calm-", dir=options.folder) as name:
        seen = measure_calm(
            Path(name),
            minutes=options.minutes,
            writers=options.writers,
            spinning=options.spinning,
        )
    print(json.dumps(asdict(seen), indent=2))
    found = problems(seen)
    for sentence in found:
        _announce(sentence)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

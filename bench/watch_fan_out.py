"""``python -m bench.watch_fan_out``: one writer without and with many watchers of the leader.

Prints one JSON object. ``cost`` is the share of its writes that the writer loses; the watchers and
the nodes share the processors, so it includes the work of both. Exits with 1 if a watcher did not
see the last write, or if the leader's resident memory grew by more than a tenth between the first
fifth of the time and its end.

    python -m bench.watch_fan_out --watchers 1000 --seconds 60
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.build_form import print_form
from bench.closed_loop import LoadResult, run_writers
from bench.loop import loop_factory
from bench.quorum_under_load import start_cluster
from quorate.client.client import Client
from quorate.demo.local_cluster import LocalCluster, LocalNode

GROWTH_MAX = 1.1
ARRIVAL_SECONDS_MAX = 60.0
_SAMPLES = 5


def resident_mib(node: LocalNode) -> float:
    """Return the resident memory of a running node in MiB."""
    if node.process is None:
        raise RuntimeError(f"node {node.id} does not run")
    status = Path(f"/proc/{node.process.pid}/status").read_text(encoding="utf-8")
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


async def _watch(client: Client, ends: list[int], number: int) -> None:
    watch = client.watch()
    async for _ in watch:
        ends[number] = watch.offset


@contextmanager
def _running(folder: Path, watchers: int) -> Iterator[LocalCluster]:
    # One caller gets half of the places.
    settings = {"limits.disk_free_bytes_min": 0, "limits.watches_max": 4 * watchers}
    with tempfile.TemporaryDirectory(dir=folder) as home:
        cluster = LocalCluster(Path(home), settings=settings)
        try:
            start_cluster(cluster)
            yield cluster
        finally:
            cluster.stop_all()


async def _measure(cluster: LocalCluster, watchers: int, seconds: float) -> dict[str, object]:
    async with Client(cluster.addresses, timeout_seconds=30) as client:
        leader = cluster.nodes[(await client.describe_quorum()).leader_id]
        alone = await _write(client, seconds / _SAMPLES, 1)
        ends = [-1] * watchers
        memory: list[float] = []
        loads: list[LoadResult] = []
        async with Client([leader.address], timeout_seconds=30) as watching:
            tasks = [asyncio.create_task(_watch(watching, ends, n)) for n in range(watchers)]
            for part in range(_SAMPLES):
                loads.append(await _write(client, seconds / _SAMPLES, 2 + part))
                memory.append(round(resident_mib(leader), 1))
            position = (await client.list_topics(limit=1)).position.offset
            arrived = await _arrival(ends, position)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    rate = sum(load.rate for load in loads) / _SAMPLES
    return {
        "watchers": watchers,
        "writes_per_s_alone": round(alone.rate, 1),
        "writes_per_s": round(rate, 1),
        "cost": round(1 - rate / alone.rate, 2),
        "leader_mib": memory,
        "all_arrived": arrived,
        "grew": memory[-1] > memory[0] * GROWTH_MAX,
    }


async def _write(client: Client, seconds: float, run: int) -> LoadResult:
    return await run_writers(
        client, 1, seconds=seconds, warm_up_seconds=seconds / 10, first_number=run * 1_000_000
    )


async def _arrival(ends: list[int], position: int) -> bool:
    """Whether every watcher reaches ``position`` in time."""
    loop = asyncio.get_running_loop()
    until = loop.time() + ARRIVAL_SECONDS_MAX
    while min(ends) < position and loop.time() < until:  # noqa: ASYNC110 - many sources, one poll
        await asyncio.sleep(0.1)
    return min(ends) >= position


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.watch_fan_out", description=__doc__)
    parser.add_argument("--watchers", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=20.0, help="time with watchers")
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="on the disk to measure")
    arguments = parser.parse_args()
    print_form()
    with _running(arguments.folder, arguments.watchers) as cluster:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            found = runner.run(_measure(cluster, arguments.watchers, arguments.seconds))
    json.dump(found, sys.stdout)
    print()
    return int(not found["all_arrived"] or bool(found["grew"]))


if __name__ == "__main__":
    sys.exit(main())

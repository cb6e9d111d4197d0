"""``python -m bench.console_cost``: what a console costs a node with many partitions.

One node; a client writes at a fixed rate, and measures. By turns: no console; one that loads the
state; one that follows; one whose pages are loaded as browsers load them. Latencies are those of
writes, and the processor time that of the node. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

from bench.build_form import print_form
from bench.scale_cluster import Latencies, ManyPartitions
from bench.scale_image import PARTITIONS_PER_TOPIC
from bench.screenshots import running
from quorate.client.client import Client
from quorate.client.writes import TOPIC
from quorate.demo.local_cluster import LocalCluster, LocalNode

PAGES: Final = ("", "quorum", "leadership", "alerts", "features")
"""Those that load themselves again."""
RELOAD_SECONDS: Final = 5.0
LOADING_SECONDS_MAX: Final = 900.0
ANSWER_SECONDS_MAX: Final = 300.0


@dataclass(slots=True)
class Phase:
    """What was measured in all turns of one kind."""

    writes: Latencies = field(default_factory=Latencies)
    wall_seconds: float = 0.0
    node_seconds: float = 0.0

    def as_row(self) -> dict[str, object]:
        """Return the report row; the node's time is the share of one processor."""
        return {
            "writes": len(self.writes.values),
            "p50_ms": self.writes.p(0.5),
            "p99_ms": self.writes.p(0.99),
            "seconds": round(self.wall_seconds, 1),
            "node_seconds": round(self.node_seconds, 2),
            "node_share": round(self.node_seconds / (self.wall_seconds or 1), 4),
        }


class Turns:
    """The client of the node, and what it measures."""

    def __init__(self, client: Client, node: LocalNode, rate: float) -> None:
        self._client = client
        self._node = node
        self._rate = rate
        self.phases: dict[str, Phase] = {}

    @asynccontextmanager
    async def measured(self, name: str) -> AsyncIterator[None]:
        """Write at the fixed rate for as long as the block takes."""
        phase = self.phases.setdefault(name, Phase())
        writer = asyncio.create_task(self._write(phase.writes))
        began, used = time.perf_counter(), self._used()
        try:
            yield
        finally:
            phase.wall_seconds += time.perf_counter() - began
            phase.node_seconds += self._used() - used
            writer.cancel()
            await asyncio.wait([writer])

    async def _write(self, latencies: Latencies) -> None:
        """The next write is due at its time, also if the one before is not answered."""
        tasks: set[asyncio.Task[None]] = set()
        began, sent = time.perf_counter(), 0
        try:
            while True:
                write = self._client.set_config(TOPIC, "scale-0", "retention.ms", str(sent + 1))
                task = asyncio.create_task(latencies.measure(write))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
                sent += 1
                await asyncio.sleep(max(0.0, began + sent / self._rate - time.perf_counter()))
        finally:
            await asyncio.gather(*tasks)

    def _used(self) -> float:
        assert self._node.process is not None
        times = psutil.Process(self._node.process.pid).cpu_times()
        return float(times.user + times.system)


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=ANSWER_SECONDS_MAX) as answer:
        return bytes(answer.read())


def _is_loaded(url: str) -> bool:
    return bool(json.loads(_get(f"{url}api/topics"))["topics"]["rows"])


def _console(stack: ExitStack, addresses: str, code: Path) -> str:
    """Start the console of a checkout; returns its address."""
    arguments = ("console", "--bootstrap", addresses, "--listen", "127.0.0.1:0")
    process = stack.enter_context(
        running(*arguments, environment={"PYTHONSAFEPATH": "1", "PYTHONPATH": str(code)})
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "console at " in line:
            return line.split("console at ")[1].strip()
    raise RuntimeError("the console has ended")


async def _browse(url: str, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for page in PAGES:
            await asyncio.to_thread(_get, f"{url}{page}")
        await asyncio.sleep(RELOAD_SECONDS)


async def _turn(turns: Turns, cluster: LocalCluster, code: Path, seconds: float) -> float:
    """Measure every phase once; returns how long the console took to load."""
    async with turns.measured("no console"):
        await asyncio.sleep(seconds)
    with ExitStack() as stack:
        began = time.monotonic()
        async with turns.measured("loading"):
            addresses = ",".join(cluster.addresses)
            url = await asyncio.to_thread(_console, stack, addresses, code)
            while not await asyncio.to_thread(_is_loaded, url):
                if time.monotonic() - began > LOADING_SECONDS_MAX:
                    raise TimeoutError("the console has not loaded the state")
                await asyncio.sleep(0.25)
        loaded = time.monotonic() - began
        async with turns.measured("following"):
            await asyncio.sleep(seconds)
        async with turns.measured("pages"):
            await _browse(url, seconds)
    return loaded


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured, and for how long."""

    partitions: int
    rounds: int
    seconds: float
    rate: float
    codes: list[Path]
    """Checkouts; the node and the console are of one of them at a time."""


async def measure(folder: Path, plan: Plan) -> dict[str, object]:
    """Create the partitions, and measure each phase once in each round with each checkout."""
    cluster = LocalCluster(folder, voters=1, settings={"limits.disk_free_bytes_min": 0})
    (node,) = cluster.nodes.values()
    # Else Python takes modules from the working folder, whichever checkout is asked for.
    cluster.environment |= {"PYTHONSAFEPATH": "1", "PYTHONPATH": str(plan.codes[0])}
    rows: dict[str, object] = {"partitions": plan.partitions}
    try:
        cluster.format(node)
        cluster.start(node)
        cluster.wait_ready([node])
        async with Client(cluster.addresses, timeout_seconds=ANSWER_SECONDS_MAX) as client:
            many = ManyPartitions(cluster, client, lambda text: print(text, file=sys.stderr))
            async with many.brokers():
                await many.create(plan.partitions // PARTITIONS_PER_TOPIC)
                all_turns = [Turns(client, node, plan.rate) for _ in plan.codes]
                loads: list[list[float]] = [[] for _ in plan.codes]
                for _ in range(plan.rounds):
                    for code, turns, loaded in zip(plan.codes, all_turns, loads, strict=True):
                        if cluster.environment["PYTHONPATH"] != str(code):
                            cluster.environment["PYTHONPATH"] = str(code)
                            await asyncio.to_thread(cluster.stop, node)
                            cluster.start(node)
                            await asyncio.to_thread(cluster.wait_ready, [node], LOADING_SECONDS_MAX)
                        loaded.append(await _turn(turns, cluster, code, plan.seconds))
                        print(code, loaded, file=sys.stderr)
        for code, turns, loaded in zip(plan.codes, all_turns, loads, strict=True):
            rows[str(code)] = {
                "loaded_after_seconds": [round(each, 1) for each in loaded],
                **{name: phase.as_row() for name, phase in turns.phases.items()},
            }
        return rows | {"load_average": os.getloadavg()[0]}
    finally:
        cluster.stop_all()


def main() -> int:
    """Alternate the phases, so that other work on the machine affects all of them alike."""
    parser = argparse.ArgumentParser(prog="bench.console_cost", description=__doc__)
    parser.add_argument("--partitions", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0, help="length of a phase")
    parser.add_argument("--rate", type=float, default=50.0, help="writes per second")
    parser.add_argument(
        "--compare", type=Path, action="append", default=[], help="another checkout, in turn"
    )
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="on the disk to measure")
    arguments = parser.parse_args()
    print_form()
    plan = Plan(
        arguments.partitions,
        arguments.rounds,
        arguments.seconds,
        arguments.rate,
        [Path.cwd(), *(each.resolve() for each in arguments.compare)],
    )
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        found = asyncio.run(measure(Path(folder), plan))
    json.dump(found, sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Fifty leaders die by SIGKILL under default settings, and writes go on within the bounds.

The one writer waits for its answer before it writes again, so each time is that from the kill to
the next acknowledgement. What processes waited for a processor that others used is not the
quorum's doing: it is taken off every time, and what was measured is printed and recorded beside.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.closed_loop import create_topics
from bench.failover import Failover, measure_failover
from bench.failover_bounds import LONGEST_MAX_MS, P50_MAX_MS, exceeded
from quorate.client.client import Client
from tests.integration.processes import Processes, running
from tests.integration.run_queue import RunQueue

pytestmark = [pytest.mark.integration, pytest.mark.nightly]

KILLS = 50


def own_ms(each: Failover, queue: RunQueue) -> float:
    """What is left of a time without waits for a processor."""
    return max(0.0, each.ms - 1000 * queue.waited(each.killed_at, each.answered_at))


def test_fifty_dead_leaders_keep_writers_waiting_no_longer_than_promised(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Goal: median and longest time to the next acknowledged write. Method: fifty kills."""
    with (
        running(tmp_path) as cluster,
        RunQueue(lambda: _pids(cluster)) as queue,
    ):
        asyncio.run(_prepare(cluster))
        failovers = measure_failover(cluster, rounds=KILLS)
        measured = [each.ms for each in failovers]
        own = [own_ms(each, queue) for each in failovers]
    figures = {
        "kills": len(failovers),
        "p50_ms": round(statistics.median(measured)),
        "longest_ms": round(max(measured)),
        "own_p50_ms": round(statistics.median(own)),
        "own_longest_ms": round(max(own)),
    }
    print(figures)
    for name, value in figures.items():
        record_property(name, value)
    assert len(failovers) == KILLS
    assert exceeded(own, p50_max_ms=P50_MAX_MS, longest_max_ms=LONGEST_MAX_MS) == []


async def _prepare(cluster: Processes) -> None:
    async with Client(cluster.addresses, client_id="test") as client:
        await create_topics(client)


def _pids(cluster: Processes) -> list[int]:
    return [node.process.pid for node in cluster.running_nodes if node.process is not None]

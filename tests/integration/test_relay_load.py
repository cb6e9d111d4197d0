"""Real processes: what twenty observers behind two relays cost the leader, under write load.

Figures are per acknowledged write at a fixed pace, and of one run: what the machine does besides
meets both sides alike. Of the leader's bytes only those of replicas count, not the test's own.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import psutil
import pytest

from quorate.client.client import Client
from quorate.demo.local_cluster import LocalNode
from quorum.v1 import commands_pb2 as wire
from tests.integration.campaign_bars import Cost, relay_problems
from tests.integration.processes import Processes, running
from tests.integration.socket_bytes import bytes_by_peer, grown

RELAYS = (11, 12)
BELOW = range(21, 39)
WRITES = 400
PAUSE_SECONDS = 0.025
"""Between an answer and the next write: one at a time, so that every write is sent on by itself."""
VALUE_BYTES = 200
RESULTS = ("equal", "different", "too_early", "unknown")


def fetches(cluster: Processes, leader: LocalNode) -> float:
    """Return the number of Fetches that the leader's process has evaluated."""
    counts = (
        cluster.metric(leader, f'quorate_raft_digests_compared_total{{result="{each}"}}')
        for each in RESULTS
    )
    return sum(count or 0 for count in counts)


def bytes_of_replicas(leader: LocalNode) -> dict[int, int]:
    """By connection to the leader, without those of this process."""
    own = {each.laddr.port for each in psutil.Process().net_connections("tcp") if each.laddr}
    counted = bytes_by_peer(int(leader.address.rpartition(":")[2]))
    return {peer: count for peer, count in counted.items() if peer not in own}


def cpu_ms(leader: LocalNode) -> float:
    """Return the processor time of the leader's process."""
    assert leader.process is not None
    times = psutil.Process(leader.process.pid).cpu_times()
    return (times.user + times.system) * 1000


def cost_of_writes(cluster: Processes, leader: LocalNode, numbers: itertools.count[int]) -> Cost:
    """Write at a fixed pace, and read the leader's counts around it."""

    async def write() -> Cost:
        async with Client(cluster.addresses, client_id="load", timeout_seconds=60) as client:

            async def one() -> None:
                await client.set_config(
                    wire.CONFIG_RESOURCE_TYPE_CLIENT_METRICS,
                    "subscription",
                    "metrics",
                    f"{next(numbers)}".rjust(VALUE_BYTES, "v"),
                )

            await one()
            before = fetches(cluster, leader), bytes_of_replicas(leader), cpu_ms(leader)
            for _ in range(WRITES):
                await one()
                await asyncio.sleep(PAUSE_SECONDS)  # the pace of the load, not a wait
            after = fetches(cluster, leader), bytes_of_replicas(leader), cpu_ms(leader)
            return Cost(
                (after[0] - before[0]) / WRITES,
                grown(before[1], after[1]) / WRITES,
                (after[2] - before[2]) / WRITES,
            )

    return asyncio.run(write())


def join(cluster: Processes, node_id: int, settings: dict[str, object]) -> LocalNode:
    """Format and start an observer."""
    node = cluster.add_observer(node_id)
    node.settings.update(settings)
    cluster.format(node)
    cluster.start(node)
    return node


@pytest.mark.integration
@pytest.mark.nightly
def test_twenty_observers_behind_two_relays_cost_what_two_cost(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Goal: the leader's Fetches, bytes and CPU per write do not grow. Method: 2, then 18 more."""
    with running(tmp_path) as cluster:
        numbers = itertools.count(1)
        relays = [join(cluster, each, {"relay.enable": True}) for each in RELAYS]
        cluster.wait_ready(relays, 120)
        leader = cluster.leader()
        began = time.monotonic()
        with_two = cost_of_writes(cluster, leader, numbers)
        addresses = [relay.address for relay in relays]
        below = [
            join(cluster, each, {"relay.fetch_from": addresses[each % 2 :] + addresses[: each % 2]})
            for each in BELOW
        ]
        cluster.wait_ready(below, 300)
        with_twenty = cost_of_writes(cluster, leader, numbers)
        assert cluster.leader().id == leader.id, "a change of leader spoils the figures"
        served = [cluster.metric(relay, "quorate_raft_relay_downstream") for relay in relays]
        print(
            f"per write at the leader, with 2: {with_two}; with 20: {with_twenty}; below the "
            f"relays {served}; {time.monotonic() - began:.0f} s"
        )
        for count, cost in ((2, with_two), (20, with_twenty)):
            for name, value in asdict(cost).items():
                record_property(f"leader_{name}_per_write_with_{count}_observers", round(value, 2))
        assert [cluster.metric(each, "quorate_raft_relay_hops") for each in below] == [1.0] * len(
            below
        )
        assert sum(count or 0 for count in served) >= len(below)
        assert relay_problems(with_two, with_twenty, value_bytes=VALUE_BYTES) == []

"""Every kind of fault, carried out once on a quiet cluster, has an effect.

A schedule draws some kinds rarely. If a fault has no effect, the figures of the chaos lanes mean
nothing: the faults between nodes once had none for a while.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from quorate.client.client import Client
from quorate.client.queries import LINEARIZABLE
from tests.chaos import node as chaos_node
from tests.chaos.cluster import ChaosCluster
from tests.chaos.nemesis import Act, Nemesis
from tests.chaos.schedule import DEPOSES_SECONDS, NETWORK, PROCESS, Fault, Kind

SECONDS = 1.0
TRIES = 8
"""Seconds of a fault. On a loaded machine a client may send nothing for a second; a fault that is a
no-op has no effect in eight seconds either."""
DEPOSED_SECONDS_MAX = 20.0
"""Seconds for a loaded machine; an idle one takes 2 to 3 s."""


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[tuple[ChaosCluster, Nemesis]]:
    """A started cluster and a nemesis without a schedule."""
    cluster = ChaosCluster(folder)
    await cluster.open_proxies()
    try:
        await asyncio.to_thread(cluster.format_all)
        await asyncio.to_thread(cluster.start_all)
        yield cluster, Nemesis(cluster, 1, ({}, {}), print)
    finally:
        await asyncio.to_thread(cluster.end_all)
        await cluster.close_proxies()


async def ask_all(cluster: ChaosCluster, stop: asyncio.Event) -> None:
    """Read at every node, on open connections; refusals do not matter here.

    Each linearizable read makes the leader and its followers exchange messages. So no link is idle
    during its fault. A client that lost its node may stay at another one that it has learned of, so
    each failure is followed by a new client of the same node.
    """

    async def ask(address: str) -> None:
        while not stop.is_set():
            async with Client([address], client_id="asker", timeout_seconds=1) as client:
                with contextlib.suppress(Exception):
                    while not stop.is_set():
                        await client.describe_topics(["none"], read=LINEARIZABLE)
            await asyncio.sleep(0.05)

    await asyncio.gather(*(ask(address) for address in cluster.addresses))


@pytest.mark.integration
@pytest.mark.long
def test_every_kind_of_fault_has_its_effect(tmp_path: Path) -> None:
    async def main() -> list[str]:
        missed = []
        async with running(tmp_path) as (cluster, nemesis):
            stop = asyncio.Event()
            asking = asyncio.create_task(ask_all(cluster, stop))
            lanes: tuple[tuple[dict[Kind, int], Act], ...] = (
                (NETWORK, nemesis._break_network),
                (PROCESS, nemesis._break_process),
            )
            for weights, act in lanes:
                for kind in weights:
                    for number in range(TRIES):
                        await asyncio.to_thread(cluster.wait_ready, cluster.voters, 120.0)
                        fault = Fault(number, kind, True, 0, SECONDS, 0.0, 0.5)
                        if (await act(fault)).has_effect:
                            break
                    else:
                        missed.append(kind.value)
            stop.set()
            await asking
            return missed + nemesis.problems

    missed = asyncio.run(main())
    assert missed == [], "\n".join(missed)


@pytest.mark.integration
@pytest.mark.long
@pytest.mark.parametrize("kind", [Kind.ISOLATE, Kind.ISOLATE_RESET])
def test_a_cut_leader_is_deposed(tmp_path: Path, kind: Kind) -> None:
    async def main() -> None:
        async with running(tmp_path) as (cluster, nemesis):
            leader = await asyncio.to_thread(cluster.leader)
            inward, outward = nemesis._peers(leader)
            fault = Fault(1, kind, True, 0, DEPOSES_SECONDS, 0.0, 0.5)
            nemesis._apply(fault, inward, outward, [])
            await asyncio.to_thread(
                cluster.until,
                "another leader",
                lambda: (found := cluster.find_leader()) is not None and found is not leader,
                DEPOSED_SECONDS_MAX,
            )
            cluster.links.heal()

    asyncio.run(main())


def test_the_option_that_the_proxy_needs_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(chaos_node.sys.modules, "quorum.transport.conversation", raising=False)
    options = chaos_node.limits.CLIENT_OPTIONS
    monkeypatch.setattr(chaos_node.limits, "CLIENT_OPTIONS", options)
    chaos_node.dial_through_proxy()
    assert (chaos_node.OPTION, 1) in chaos_node.limits.CLIENT_OPTIONS
    with pytest.raises(LookupError, match="not among the options"):
        chaos_node.dial_through_proxy()

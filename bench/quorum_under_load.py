"""Write rate and latency of a three-node Quorate, with a check that every write was durable.

Counts the nodes' own fdatasync calls (from ``/metrics``) and the commit groups of the leader during
the load. A run with fewer than one sync per commit group on a majority of the nodes is refused,
because it would measure memory instead of disks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import psutil

from bench.closed_loop import LoadResult, create_topics, run_writers
from bench.loop import loop_factory
from quorate.client.client import Client
from quorate.controller.config import ControllerConfig
from quorate.demo.local_cluster import LocalCluster, LocalNode

SYNCS = "quorate_log_sync_seconds_count"
COMMITS = "quorate_raft_commit_seconds_count"
GROUPS_IN_FLIGHT_MAX = ControllerConfig("").groups_in_flight_max
_NUMBERS_PER_RUN = 10_000_000


class NotDurableError(Exception):
    """Fewer syncs than commit groups, so the figures of this run are void."""


@dataclass(frozen=True, slots=True)
class NodeFigures:
    """The figures of one node during a run."""

    node_id: int
    role: str
    fdatasyncs: int
    cpu_us_per_write: float


@dataclass(frozen=True, slots=True)
class DurableLoad:
    """A load whose durability was checked."""

    load: LoadResult
    nodes: tuple[NodeFigures, ...]
    commit_groups: int

    def as_row(self) -> dict[str, object]:
        """Return the report row."""
        row: dict[str, object] = asdict(self.load)
        row["clients"] = row.pop("writers")
        row["rate"] = self.load.rate
        row["load_us"] = self.load.client_us_per_write
        used: dict[str, list[float]] = {role: [] for role in ("leader", "follower")}
        for node in self.nodes:
            used[node.role].append(node.cpu_us_per_write)
        row["leader_us"] = sum(used["leader"])
        row["followers_us"] = sorted(used["follower"])
        row["commit_groups"] = self.commit_groups
        row["nodes"] = [asdict(node) for node in self.nodes]
        return row


@dataclass(frozen=True, slots=True)
class _Reading:
    syncs: int
    commits: int
    cpu_seconds: float


def _read(cluster: LocalCluster, node: LocalNode) -> _Reading:
    assert node.process is not None
    times = psutil.Process(node.process.pid).cpu_times()
    return _Reading(
        int(cluster.metric(node, SYNCS) or 0),
        int(cluster.metric(node, COMMITS) or 0),
        times.user + times.system,
    )


def check_durable(syncs: Sequence[int], commit_groups: int) -> None:
    """Raise an error unless a majority of disks synced every commit group.

    The majority that synced a group differs from group to group (the slowest node covers several
    groups with one sync). So the syncs of all nodes together are compared with a majority's share.
    A node covers at most ``GROUPS_IN_FLIGHT_MAX`` groups with one sync, so each node of a majority
    must also show its own share.

    Raises:
        NotDurableError: Fewer than one sync per commit group on a majority of the nodes.
    """
    majority = len(syncs) // 2 + 1
    least_of_majority = sorted(syncs)[-majority]
    if (
        commit_groups < 1
        or sum(syncs) < majority * commit_groups
        or least_of_majority * GROUPS_IN_FLIGHT_MAX < commit_groups
    ):
        raise NotDurableError(
            f"{commit_groups} commit groups, but the nodes synced only {sorted(syncs)} times"
        )


async def measure_load(
    cluster: LocalCluster,
    client: Client,
    writers: int,
    *,
    seconds: float,
    warm_up_seconds: float,
    run: int,
) -> DurableLoad:
    """Run one closed-loop load and read the nodes' figures before and after.

    Raises:
        NotDurableError: See ``check_durable``.
    """
    nodes = list(cluster.nodes.values())
    before = {node.id: _read(cluster, node) for node in nodes}
    load = await run_writers(
        client,
        writers,
        seconds=seconds,
        warm_up_seconds=warm_up_seconds,
        first_number=run * _NUMBERS_PER_RUN,
    )
    after = {node.id: _read(cluster, node) for node in nodes}
    # The nodes' counters include the warm-up's writes; the result does not.
    writes = load.writes * (seconds + warm_up_seconds) / seconds
    leader = next((node for node in nodes if node.address == client.leader), None)
    figures = tuple(
        NodeFigures(
            node.id,
            "leader" if node is leader else "follower",
            after[node.id].syncs - before[node.id].syncs,
            (after[node.id].cpu_seconds - before[node.id].cpu_seconds) / writes * 1e6,
        )
        for node in nodes
    )
    groups = max(after[each].commits - before[each].commits for each in after)
    check_durable([each.fdatasyncs for each in figures], groups)
    return DurableLoad(load, figures, groups)


def run_load(
    cluster: LocalCluster, writers: int, *, seconds: float, warm_up_seconds: float, run: int
) -> DurableLoad:
    """Run one closed-loop load through a new client; ``run`` must be unique.

    Raises:
        NotDurableError: See ``check_durable``.
    """

    async def go() -> DurableLoad:
        async with Client(cluster.addresses, client_id="bench", reason="benchmark") as client:
            return await measure_load(
                cluster,
                client,
                writers,
                seconds=seconds,
                warm_up_seconds=warm_up_seconds,
                run=run,
            )

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(go())


def start_cluster(cluster: LocalCluster) -> None:
    """Format and start the nodes, wait until all serve clients, and create the topics."""

    async def prepare() -> None:
        async with Client(cluster.addresses, client_id="bench", reason="benchmark") as client:
            await create_topics(client)

    for node in cluster.nodes.values():
        cluster.format(node)
        cluster.start(node)
    cluster.wait_ready(list(cluster.nodes.values()))
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(prepare())

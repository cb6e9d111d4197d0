"""Kills and a partition under load, with the peers' streams over each of the two wires.

The long lanes of kills and chaos use gRPC. Here a short plan of both kinds runs over each wire
(ADR 63), and what was acknowledged is checked in the same way. Every process run loses what was not
synced when it is killed, so a follower comes back with a shorter log. The isolated leader has
records that no majority has, and comes back to truncate them.
"""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path

import pytest

from quorate.demo.local_cluster import LocalNode
from tests.chaos.cluster import ChaosCluster
from tests.integration.kill_campaign import Campaign
from tests.integration.kill_schedule import Round, Victims

pytestmark = [pytest.mark.integration, pytest.mark.long]

GRPC, TCP = "grpc", "tcp"
CONNECTS = "quorate_raft_tcp_connects_total"
CAN_WRITE = "quorate_raft_can_write"
PLAN = [
    Round(number, victims, 50, down_ms, waits_until_ready=True, is_volatile_next=True)
    for number, (victims, down_ms) in enumerate(
        [
            (Victims.LEADER, 0),
            (Victims.FOLLOWER, 300),
            (Victims.ALL, 0),
        ]
    )
]
SHARE_OF_TCP_MIN = 0.5
"""Of the bytes between nodes before the partition. First streams take 31 KB."""
DIVERGED = "event=log_diverged"


class WireCampaign(Campaign):
    """A kill campaign that ends with an isolated leader, and counts bytes by wire."""

    cluster: ChaosCluster

    def __init__(self, cluster: ChaosCluster, *, seed: int, wire: str) -> None:
        super().__init__(cluster, seed=seed)
        self._wire = wire
        self.by_grpc = self.by_tcp = 0

    async def _round(self, each: Round) -> None:
        await self._check_wire()
        await super()._round(each)
        if each is PLAN[-1]:
            await self._progress("after the last kill")
            await self._check_wire()
            self.by_grpc, self.by_tcp = self.cluster.carried_between_nodes()
            await self._isolate_the_leader()
            await self._progress("after the partition")

    async def _check_wire(self) -> None:
        """Wait until every node has a stream of the wire that is meant; they begin with gRPC's."""
        for node in self.cluster.voters:
            await asyncio.to_thread(
                self.cluster.until,
                f"node {node.id} on {self._wire}",
                lambda at=node: self._is_on(at),
            )

    def _is_on(self, node: LocalNode) -> bool:
        return ((self.cluster.metric(node, CONNECTS) or 0) > 0) is (self._wire == TCP)

    async def _isolate_the_leader(self) -> None:
        """Hold everything between the leader and its followers until one of them leads."""
        cluster = self.cluster
        leader = await asyncio.to_thread(cluster.leader)
        others = [node for node in cluster.voters if node is not leader]
        directions = [
            pair for each in others for pair in ((leader.id, each.id), (each.id, leader.id))
        ]
        before = cluster.links.affected(directions)
        truncations = leader.log_path.read_text().count(DIVERGED)
        cluster.links.hold(directions)
        try:
            await asyncio.to_thread(
                cluster.until,
                "another leader",
                lambda: any(cluster.metric(each, CAN_WRITE) == 1 for each in others),
            )
            await self._progress("beside the isolated leader")
        finally:
            cluster.links.heal(directions)
        assert cluster.links.affected(directions) > before, "the partition had no effect"
        # At first it still believes that it leads, and is ready.
        await asyncio.to_thread(
            cluster.until,
            "a truncated log of the former leader",
            lambda: leader.log_path.read_text().count(DIVERGED) > truncations,
        )
        await asyncio.to_thread(cluster.wait_ready, [leader])


async def execute(cluster: ChaosCluster, campaign: WireCampaign) -> None:
    await cluster.open_proxies()
    try:
        await asyncio.to_thread(cluster.start_all)
        await campaign.run(PLAN)
    finally:
        await asyncio.to_thread(cluster.end_all)
        await cluster.close_proxies()


@pytest.mark.parametrize("wire", [GRPC, TCP])
def test_kills_and_a_partition_lose_nothing(tmp_path: Path, wire: str) -> None:
    seed = secrets.randbits(32)
    cluster = ChaosCluster(tmp_path, has_peer_tcp=wire == TCP)
    campaign = WireCampaign(cluster, seed=seed, wire=wire)
    try:
        cluster.format_all()
        asyncio.run(execute(cluster, campaign))
    except BaseException as error:
        error.add_note(cluster.report())
        raise
    print(f"seed {seed}: {campaign.tally} {campaign.ledger.counts()}")
    print(f"{campaign.by_grpc} bytes by gRPC, {campaign.by_tcp} by TCP")
    assert campaign.violations == [], f"seed {seed}"
    assert campaign.tally.rounds == len(PLAN)
    share = campaign.by_tcp / (campaign.by_tcp + campaign.by_grpc)
    assert share >= SHARE_OF_TCP_MIN if wire == TCP else share == 0

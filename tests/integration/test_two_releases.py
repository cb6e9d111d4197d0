"""A cluster of this release and of the last one: rolled forward, and back, under write load.

Both directions matter: an upgrade that is not finished for days, and one that is taken back. The
feature levels stay at those of the older release meanwhile (docs/releases.md). A campaign of writes
goes on; afterwards its log and all images are examined, as after kills.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorate.demo.local_cluster import LocalNode
from tests.integration.kill_campaign import Campaign
from tests.integration.kill_schedule import Round, Victims
from tests.integration.older_release import MARK, TwoReleases, mark
from tests.integration.processes import ROOT, SETTINGS
from tests.support.last_release import checkout, last_release

pytestmark = [pytest.mark.integration, pytest.mark.long]

VOTERS = 3
FORWARD = range(VOTERS)
BACK = range(VOTERS, 2 * VOTERS)


class Roll(Campaign):
    """Each round gives one node the other release; the leader is one of each on the way."""

    def __init__(self, cluster: TwoReleases, *, seed: int) -> None:
        super().__init__(cluster, seed=seed)
        self.led_by: set[str] = set()
        self.mixes: list[int] = []

    async def _round(self, each: Round) -> None:
        await self._progress(f"before round {each.number}")
        cluster = self.cluster
        assert isinstance(cluster, TwoReleases)
        node = cluster.voters[each.number % VOTERS]
        status = await asyncio.to_thread(cluster.stop, node)
        if status != 0:
            self.violations.append(f"node {node.id} ended with {status} when asked to stop")
        if each.number in FORWARD:
            cluster.newer_nodes.add(node.id)
        else:
            cluster.newer_nodes.discard(node.id)
        cluster.start(node)
        await asyncio.to_thread(cluster.wait_ready, [node])
        self.mixes.append(len(cluster.newer_nodes))
        for voter in cluster.voters:
            await self._lead(cluster, voter)

    async def _lead(self, cluster: TwoReleases, voter: LocalNode) -> None:
        """Each node leads for a while, so every release replicates to every other."""
        await asyncio.to_thread(cluster.leader)
        leader = cluster.find_leader()
        if leader is not voter:
            done = await asyncio.to_thread(
                cluster.run, "--bootstrap", ",".join(cluster.addresses), "quorum",
                "transfer-leader", str(voter.id),
            )  # fmt: skip
            if done.status != 0:
                self.violations.append(f"node {voter.id} was not let lead: {done.err}")
                return
        await self._progress(f"while node {voter.id} leads")
        self.led_by.add("newer" if voter.id in cluster.newer_nodes else "older")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[TwoReleases]:
    older = tmp_path / "older"
    older.mkdir()
    checkout(last_release(), older)
    mark(older)
    cluster = TwoReleases(tmp_path / "nodes", older, settings=SETTINGS)
    try:
        cluster.format_all()
        cluster.start_all()
        yield cluster
    except BaseException as error:
        error.add_note(cluster.report())
        raise
    finally:
        cluster.end_all()


def test_a_cluster_is_rolled_to_this_release_and_back(cluster: TwoReleases) -> None:
    campaign = Roll(cluster, seed=1)
    rounds = [
        Round(number, Victims.ANY, 0, 0, waits_until_ready=True, is_volatile_next=False)
        for number in (*FORWARD, *BACK)
    ]
    asyncio.run(campaign.run(rounds))
    print(f"{campaign.ledger.acknowledged} acknowledged writes, {campaign.mixes} newer nodes")
    assert campaign.mixes == [1, 2, 3, 2, 1, 0]
    for voter in cluster.voters:
        # Each began as the older release, and ended as it.
        assert voter.log_path.read_text().count(MARK) == 2
    assert campaign.led_by == {"older", "newer"}
    assert campaign.violations == []


def test_commands_of_either_release_work_with_nodes_of_the_other(cluster: TwoReleases) -> None:
    node = cluster.voters[0]
    cluster.stop(node)
    cluster.newer_nodes.add(node.id)
    cluster.start(node)
    cluster.wait_ready([node])
    assert cluster.version_of(node) == str(ROOT)
    assert cluster.version_of(cluster.voters[1]) == str(cluster.older)
    for value, run in ((1, cluster.run), (2, cluster.run_older)):
        for leader in (cluster.voters[0], cluster.voters[1]):
            servers = ("--bootstrap", ",".join(cluster.addresses), "-o", "json")
            if cluster.leader() is not leader:
                done = run(*servers, "quorum", "transfer-leader", str(leader.id))
                assert done.status == 0, done.err
            set_to = value * 1000 + leader.id
            written = run(*servers, "config", "set", "broker", "", f"log.retention.ms={set_to}")
            assert written.status == 0, written.err
            for voter in cluster.voters:
                shown = run(
                    "--bootstrap", voter.address, "-o", "json", "quorum", "describe", "status"
                )
                assert json.loads(shown.out)["leader_id"] == leader.id

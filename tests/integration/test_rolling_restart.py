"""Every node is stopped and started again, one after the other, under write load.

No write is lost or applied twice, and none waits longer than a second: a leader transfers
leadership before it stops. The client library measures; the longest wait is printed. Time in which
processes waited for a processor is not caused by the quorum and not counted.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.campaign_bars import Restarts, restart_problems
from tests.integration.kill_campaign import Campaign
from tests.integration.kill_schedule import Round, Victims
from tests.integration.processes import Processes, running
from tests.integration.run_queue import RunQueue

pytestmark = [pytest.mark.integration, pytest.mark.long]

SEED = 1
TURNS = 2
VOTERS = 3


class RollingRestart(Campaign):
    """A campaign that stops one node at a time, and asks it to."""

    transferred = 0

    async def _round(self, each: Round) -> None:
        await self._progress(f"before restart {each.number}")
        cluster = self.cluster
        node = cluster.voters[each.number % len(cluster.voters)]
        leads = await asyncio.to_thread(cluster.find_leader) is node
        status = await asyncio.to_thread(cluster.stop, node)
        if status != 0:
            self.violations.append(f"node {node.id} ended with {status} when asked to stop")
        if leads:
            text = node.log_path.read_text()
            self.transferred += text.count('outcome="superseded by a later epoch"') > 0
        await self._progress(f"with node {node.id} down")
        cluster.start(node)
        await asyncio.to_thread(cluster.wait_ready, [node])


def test_a_rolling_restart_loses_no_write_and_delays_no_client(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    with (
        running(tmp_path, voters=VOTERS) as cluster,
        RunQueue(lambda: _pids(cluster)) as queue,
    ):
        campaign = RollingRestart(cluster, seed=SEED)
        rounds = [
            Round(number, Victims.ANY, 0, 0, waits_until_ready=True, is_volatile_next=False)
            for number in range(TURNS * VOTERS)
        ]
        random.Random(SEED).shuffle(rounds)
        asyncio.run(campaign.run(rounds))
        waits = sorted(campaign.ledger.waits)
        longest_own = max(
            wait - queue.waited(answered_at - wait, answered_at)
            for wait, answered_at in zip(
                campaign.ledger.waits, campaign.ledger.answered_at, strict=True
            )
        )
        print(
            f"{len(waits)} acknowledged writes, worst wait {waits[-1]:.3f} s, "
            f"at most {longest_own:.3f} s of a wait not for a processor, "
            f"{campaign.transferred} leadership-transfers, {campaign.ledger.counts()}"
        )
        record_property("restarts", len(rounds))
        record_property("acknowledged_writes", len(waits))
        record_property("longest_wait_ms", round(waits[-1] * 1000))
        record_property("leadership_transfers", campaign.transferred)
        record_property("violations", len(campaign.violations))
        came_to = Restarts(len(rounds), campaign.transferred, len(waits), longest_own)
        assert restart_problems(came_to, campaign.violations) == []


def _pids(cluster: Processes) -> list[int]:
    return [node.process.pid for node in cluster.running_nodes if node.process is not None]

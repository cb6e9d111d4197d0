"""Repeated SIGKILL under load: no acknowledged write is lost or applied twice.

Every other process run of a node also loses unsynced data, so the run checks the fsync discipline
as well; a build without fsync fails it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import secrets
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from quorate.demo.local_cluster import ClusterError
from tests.integration.campaign_bars import ROUNDS, kill_problems
from tests.integration.kill_campaign import FILESYSTEM, NO_SYNC, Campaign
from tests.integration.kill_schedule import Round, Victims, draw_rounds
from tests.integration.processes import running

pytestmark = [pytest.mark.integration, pytest.mark.long]

ROUNDS_WITHOUT_SYNC_MAX = 3
SETTINGS: dict[str, object] = {
    "log.segment_bytes": 128 << 10,
    "snapshot.max_bytes_between": 256 << 10,
    "snapshot.min_changed_records_ratio": 0.01,
    "quorum.fetch_max_wait_ms": 100,
    "quorum.observer_session_ms": 300,
}
"""Small enough for many segments, checkpoints and trimmed logs in one run. The load overwrites a
few keys, so a higher ratio would leave most checkpoints out. A leader trims no log within a session
of its beginning, and few of them lead for longer than a second.
"""


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """``--sim-seed`` repeats the plan of an earlier run; the moments stay the machine's."""
    given = request.config.getoption("--sim-seed")
    return secrets.randbits(32) if given is None else int(given)


def test_fifty_kills_lose_nothing(
    tmp_path: Path, seed: int, record_property: Callable[[str, object], None]
) -> None:
    with running(tmp_path, settings=SETTINGS) as cluster:
        campaign = Campaign(cluster, seed=seed)

        try:
            asyncio.run(campaign.run(draw_rounds(random.Random(seed), ROUNDS)))
        finally:
            print(f"seed {seed}: {campaign.tally} {campaign.ledger.counts()}")
            record_property("seed", seed)
            for name, value in {**asdict(campaign.tally), **campaign.ledger.counts()}.items():
                record_property(name, json.dumps(value))
        tally = campaign.tally
        record_property("violations", len(campaign.violations))
        acknowledged = campaign.ledger.acknowledged
        assert kill_problems(tally, acknowledged, campaign.violations) == [], f"seed {seed}"


def test_a_build_without_fsync_fails(tmp_path: Path, seed: int) -> None:
    """The same run on a file system that only claims to sync: the check must not pass."""
    with running(tmp_path, settings={**SETTINGS, FILESYSTEM: NO_SYNC}) as cluster:
        campaign = Campaign(cluster, seed=seed, volatile=NO_SYNC, progress_seconds=5)
        rounds = [
            Round(number, Victims.ALL, 100, 0, waits_until_ready=True, is_volatile_next=True)
            for number in range(ROUNDS_WITHOUT_SYNC_MAX)
        ]

        async def run() -> None:
            # The epoch fell back as well, so the load finds no leader it may believe.
            with contextlib.suppress(ClusterError):
                await campaign.run(rounds)
            await campaign.examine_what_is_served()

        asyncio.run(run())
        assert campaign.tally.rounds <= ROUNDS_WITHOUT_SYNC_MAX
        assert any("acknowledged but lost" in each for each in campaign.violations), f"seed {seed}"

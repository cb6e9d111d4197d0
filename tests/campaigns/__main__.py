"""``python -m tests.campaigns NAME``: run one campaign against real processes.

Exit code 0: no problem; 3: a problem was found; 1: less took place than was asked for.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.campaigns.calls import SETTINGS as CALLS_SETTINGS
from tests.campaigns.calls import CallsCampaign
from tests.campaigns.damages import DamagesCampaign
from tests.campaigns.damages_cluster import damages_cluster
from tests.campaigns.environment import faults, run_faults
from tests.campaigns.report import Report, Say
from tests.integration.processes import running

CALLS_MIN = 28_000
DAMAGES_MIN = 400
DAMAGES_OF_TWO_MIN = 120


def calls(folder: Path, seed: int, count: int, announce: Say) -> Report:
    """Mutated calls over every RPC."""
    with running(folder / "cluster", settings=CALLS_SETTINGS) as cluster:
        return asyncio.run(CallsCampaign(cluster, seed=seed, calls=count, announce=announce).run())


def damages(folder: Path, seed: int, count: int, announce: Say, victims: int = 1) -> Report:
    """Damage to the files of live nodes."""
    with damages_cluster(folder / "cluster", victims=victims) as cluster:
        campaign = DamagesCampaign(
            cluster, seed=seed, damages=count, announce=announce, victims=victims
        )
        return asyncio.run(campaign.run())


def damages_of_two(folder: Path, seed: int, count: int, announce: Say) -> Report:
    """Damage to the files of two live nodes at once."""
    return damages(folder, seed, count, announce, victims=2)


def environment(folder: Path, seed: int, count: int, announce: Say) -> Report:
    """Faults of a node's environment; ``count`` limits how many kinds are made."""
    return run_faults(folder, list(faults())[:count], seed, announce)


CAMPAIGNS: dict[str, tuple[Callable[[Path, int, int, Say], Report], int]] = {
    "calls": (calls, CALLS_MIN),
    "damages": (damages, DAMAGES_MIN),
    "damages-of-two": (damages_of_two, DAMAGES_OF_TWO_MIN),
    "environment": (environment, len(faults())),
}
"""Each campaign, and how many calls, damages or faults make a whole run."""


def main(arguments: list[str] | None = None) -> int:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns", description=__doc__)
    parser.add_argument("campaign", choices=sorted(CAMPAIGNS))
    parser.add_argument("--seed", type=int, help="repeats a run; drawn when not given")
    parser.add_argument("-n", "--count", type=int, help="how many calls, damages or faults")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    parser.add_argument("--folder", type=Path, help="where the nodes' folders are made; kept")
    given = parser.parse_args(arguments)
    run, whole = CAMPAIGNS[given.campaign]
    seed = random.SystemRandom().getrandbits(32) if given.seed is None else given.seed
    folder = given.folder or Path(tempfile.mkdtemp(prefix="quorate-campaign-"))
    _notify(f"{given.campaign}: seed {seed}, below {folder}")
    report = run(folder, seed, given.count or whole, _notify)
    sys.stdout.write(
        (report.json() if given.output == "json" else "\n".join(report.lines())) + "\n"
    )
    if report.is_good and given.folder is None:
        shutil.rmtree(folder)
    for problem in report.problems:
        _notify(problem)
    return report.exit_code()


def _notify(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

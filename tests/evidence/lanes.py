"""The lanes: one per claim, with a quick and a full command each."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from enum import Enum

from bench.failover_bounds import LONGEST_MAX_MS, P50_MAX_MS
from simulation.explore.models import MODELS
from simulation.profiles import PROFILES
from tests.chaos.run import LONG_FAULTS_MIN, LONG_OPERATIONS_MIN

QUICK_SEEDS = 300
FULL_SEEDS = 2_000
CHAOS_SEED = 7
KILL_SEED = 7
CAMPAIGN_SEED = 7
_REPORT = ("-o", "junit_family=xunit1", "--junit-xml=FILE")
"""The older form of the report is the one that holds what tests record."""


class Figures(Enum):
    """Where a command writes its figures."""

    PRINTED = "JSON at the end of standard output"
    FILE = "JSON in the file that is its argument"
    JUNIT = "a JUnit report"


@dataclass(frozen=True, slots=True)
class Lane:
    """One claim and how to repeat it. ``FILE`` in an argument is the path for the figures."""

    name: str
    shows: str
    quick: tuple[str, ...]
    full: tuple[str, ...]
    figures: Figures

    def arguments(self, scale: str) -> tuple[str, ...]:
        """Behind ``python -m``."""
        return self.full if scale == "full" else self.quick

    def command(self, scale: str) -> str:
        """Return the command as a person types it."""
        return shlex.join(("python", "-m", *self.arguments(scale)))


def _simulation(profile: str) -> Lane:
    def arguments(seeds: int) -> tuple[str, ...]:
        return ("quorate", "sim", "run", "--seeds", str(seeds), "--faults", profile, "-o", "json")

    return Lane(
        f"simulation-{profile}",
        f"faults of the profile {profile}: no invariant breaks, and the cluster heals",
        arguments(QUICK_SEEDS),
        arguments(FULL_SEEDS),
        Figures.PRINTED,
    )


def _exploration(model: str) -> Lane:
    arguments = ("quorate", "sim", "explore", model, "-o", "json")
    left_out = f"; without {', '.join(without)}" if (without := MODELS[model].left_out()) else ""
    return Lane(
        f"model-{model}",
        f"every interleaving of: {MODELS[model].goal}{left_out}",
        arguments,
        arguments,
        Figures.PRINTED,
    )


def _tests(name: str, shows: str, *arguments: str) -> Lane:
    common = ("pytest", *arguments, *_REPORT)
    return Lane(name, shows, common, common, Figures.JUNIT)


def _chaos(minutes: int, *least: str) -> tuple[str, ...]:
    return (
        "tests.chaos", "--minutes", str(minutes), "--seed", str(CHAOS_SEED), *least,
        "--quiet", "--json",
    )  # fmt: skip


def _campaign(name: str, shows: str, quick: int) -> Lane:
    arguments = ("tests.campaigns", name, "--seed", str(CAMPAIGN_SEED), "-o", "json")
    short = (*arguments[:2], "--count", str(quick), *arguments[2:])
    return Lane(f"campaign-{name}", shows, short, arguments, Figures.PRINTED)


def _bench(*arguments: str) -> tuple[str, ...]:
    return ("bench", *arguments, "--output", "FILE")


_FAILOVER = (
    "--kills", "50", "--fail-over-p50-max", f"{P50_MAX_MS:g}",
    "--fail-over-max", f"{LONGEST_MAX_MS:g}",
)  # fmt: skip
_ZOO = ("tests.simulation.zoo", "--publish", "--jobs", "8", "-o", "json")

LANES: tuple[Lane, ...] = (
    *(_simulation(profile) for profile in PROFILES),
    Lane(
        "recoveries",
        "over recoveries, no record is skipped, each truncation is true, no output is there twice",
        ("quorate", "sim", "recoveries", "--seeds", str(QUICK_SEEDS), "-o", "json"),
        ("quorate", "sim", "recoveries", "--seeds", "10000", "-o", "json"),
        Figures.PRINTED,
    ),
    Lane(
        "zoo",
        "every seeded bug is found by a seed, or by a scenario if no seed can reach it",
        _ZOO,
        _ZOO,
        Figures.PRINTED,
    ),
    Lane(
        "mutation",
        "the core's tests notice at least 95 % of its mutants; every other one is listed",
        ("tests.mutation", "--share", "1/10", "-o", "json"),
        ("tests.mutation", "-o", "json"),
        Figures.PRINTED,
    ),
    *(_exploration(name) for name in MODELS),
    Lane(
        "chaos",
        "real processes under faults: no write lost or applied twice, no stale read",
        _chaos(3),
        _chaos(
            30,
            *("--faults-min", str(LONG_FAULTS_MIN), "--operations-min", str(LONG_OPERATIONS_MIN)),
        ),
        Figures.PRINTED,
    ),
    _campaign(
        "calls",
        "mutated calls over every RPC leave epoch, vote, leader, voters and image as they were",
        1_000,
    ),
    _campaign(
        "damages",
        "damaged files of live nodes are repaired and reported, or refused; no write is lost",
        40,
    ),
    _campaign(
        "damages-of-two",
        "damaged files at two of six nodes at once, a minority of the voters: no write is lost",
        24,
    ),
    _campaign(
        "environment",
        "the cluster survives lack of descriptors, memory or disk, a second server, clock steps",
        3,
    ),
    Lane(
        "failover",
        "the time from the leader's SIGKILL to the next write is within its bounds",
        _bench("--only", "failover", "--peers", *_FAILOVER),
        _bench("--only", "failover", *_FAILOVER),
        Figures.FILE,
    ),
    Lane(
        "calm",
        "full load and starved processors cause no election",
        ("bench.calm", "--minutes", "3"),
        ("bench.calm", "--minutes", "60"),
        Figures.PRINTED,
    ),
    _tests(
        "kill-nine",
        "fifty SIGKILLs under load lose no write; half of the disks lose what was not synced",
        "tests/integration/test_kill_nine.py",
        f"--sim-seed={KILL_SEED}",
    ),
    _tests(
        "rolling-restart",
        "stopping and starting every node twice under load loses no write",
        "tests/integration/test_rolling_restart.py",
    ),
    _tests(
        "relay-processes",
        "twenty observers behind two relays cost the leader as much as two",
        "tests/integration/test_relay_load.py",
    ),
    Lane(
        "attacks",
        "cheap attacks on a leader stop no client or probe and cause no election",
        ("pytest", "tests/integration/test_attacks.py", "-m", "not nightly", *_REPORT),
        ("pytest", "tests/integration/test_attacks.py", "-m", "nightly", *_REPORT),
        Figures.JUNIT,
    ),
    Lane(
        "relay-scale",
        "the leader's messages and bytes by number of observers",
        ("simulation.relay_scale", "-o", "json", "100", "1000"),
        ("simulation.relay_scale", "-o", "json", "100", "1000", "10000"),
        Figures.PRINTED,
    ),
    Lane(
        "silent-death",
        "the time to the next write after a leader falls silent, and split votes",
        ("simulation.silent_death", "-o", "json", "-n", "5"),
        ("simulation.silent_death", "-o", "json", "-n", "60"),
        Figures.PRINTED,
    ),
    _tests(
        "scenarios",
        "every scenario prints what its file expects; together they cover all answers",
        "tests/scenario",
    ),
    _tests(
        "history-checker",
        "the history checker refuses hand-made bad histories and agrees with a second checker",
        "tests/unit/history",
    ),
    Lane(
        "guarantees",
        "every test and scenario behind docs/guarantees.md passes",
        ("tests.evidence.guarantees", "-m", "not nightly", *_REPORT),
        ("tests.evidence.guarantees", *_REPORT),
        Figures.JUNIT,
    ),
    Lane(
        "bench",
        "throughput, latency, checkpoints and loading, beside etcd and ZooKeeper if installed",
        _bench("--only", "floors", "writes", "image", "--rounds", "1", "--peers"),
        _bench(),
        Figures.FILE,
    ),
)

BY_NAME = {lane.name: lane for lane in LANES}

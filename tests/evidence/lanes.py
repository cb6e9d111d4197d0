"""What there is to run: one lane per claim, in two sizes, with the command of each."""

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
    """Where a command leaves its figures."""

    PRINTED = "JSON at the end of standard output"
    FILE = "JSON in the file that it is given"
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
        """As a person types it."""
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
        "zoo",
        "every bug put in on purpose is found, by seeds drawn from 1 where seeds can reach it",
        _ZOO,
        _ZOO,
        Figures.PRINTED,
    ),
    Lane(
        "mutation",
        "of the mutants of the consensus core its tests notice at least 95 %, each other is listed",
        ("tests.mutation", "--share", "1/10", "-o", "json"),
        ("tests.mutation", "-o", "json"),
        Figures.PRINTED,
    ),
    *(_exploration(name) for name in MODELS),
    Lane(
        "chaos",
        "real processes under faults: nothing lost, nothing twice, nothing stale",
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
        "damaged files of live nodes are healed and reported, or refused; no write is lost",
        40,
    ),
    _campaign(
        "damages-of-two",
        "the same at two of six nodes at once, a minority of the voters: no write is lost",
        24,
    ),
    _campaign(
        "environment",
        "descriptors, memory, read-only and full file systems, a second server, clock steps",
        3,
    ),
    Lane(
        "failover",
        "from SIGKILL of the leader to the next acknowledged write, within its bounds",
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
        "fifty SIGKILLs under load, half of the lives on disks that lose what was not synced",
        "tests/integration/test_kill_nine.py",
        f"--sim-seed={KILL_SEED}",
    ),
    _tests(
        "rolling-restart",
        "every node stopped and started twice under load",
        "tests/integration/test_rolling_restart.py",
    ),
    _tests(
        "relay-processes",
        "twenty observers behind two relays cost the leader what two cost",
        "tests/integration/test_relay_load.py",
    ),
    Lane(
        "attacks",
        "a minute of each cheap attack on a leader: clients, probes and elections notice nothing",
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
        "the time to the next write after a leader falls silent, and votes that were split",
        ("simulation.silent_death", "-o", "json", "-n", "5"),
        ("simulation.silent_death", "-o", "json", "-n", "60"),
        Figures.PRINTED,
    ),
    _tests(
        "scenarios",
        "every scenario prints what it says, and together they show what is counted",
        "tests/scenario",
    ),
    _tests(
        "history-checker",
        "the checker refuses hand-made bad histories and agrees with a second one",
        "tests/unit/history",
    ),
    Lane(
        "guarantees",
        "every test and scenario that backs a sentence of docs/guarantees.md",
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

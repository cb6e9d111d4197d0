"""Measure how long a cluster takes to replace a leader that dies silently.

A silent death means no refused connection and no EndQuorumEpoch.

``python -m simulation.silent_death [-n DEATHS] [-o json]`` prints one line per situation. Exit code
1 where the median exceeds 1.5 fetch timeouts, where more than 5 % of the deaths took more than one
election, or where an observer did not find the new leader.

Every death is a cluster of its own: production replicas with the default settings, disks of 1 to 8
ms, and a leader whose process is stopped or whose cable is pulled at a random moment. Observers are
100 to 1000 ms away (round trip). They are configured with addresses of voters and of removed
machines. All invariants are checked after every step.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from quorate.controller.requests import Answer, RequestContext
from quorum.config import QuorumConfig
from quorum.errors import ErrorCode
from quorum.log.config import LogConfig
from quorum.types import NodeId
from simulation.environment import NOWHERE
from simulation.member import Member
from simulation.options import Options
from simulation.plan import FaultPlan
from simulation.population import Population
from simulation.seeded_random import SeededRandom
from simulation.settings import Settings
from simulation.trace import Trace
from snapshot.config import SnapshotConfig
from statemachine.commands import InitProducerId

MEDIAN_MAX = 1.5
"""In fetch timeouts, from the death to the next acknowledged write."""
SPLIT_MAX = 0.05
"""Share of the deaths after which a second election was needed."""
FOUND_MAX_MS = 20_000
"""Time within which every observer must follow the new leader and have the next write."""
_ELECTED_MAX_US = 10_000_000
_WRITE_MAX_US = 30_000_000
_ANSWER_MAX_US = 1_000_000
_FOREVER_US = 1 << 60
_SLICE_US = 1_000


@dataclass(frozen=True, slots=True)
class Situation:
    """The conditions under which leaders die."""

    name: str
    voters: int
    write_every_us: int
    """Time between two writes; 0 for an idle cluster."""
    delay_us: tuple[int, int]
    """Shortest and longest one-way delay between voters."""
    observers: int = 0


SITUATIONS = (
    Situation("idle", 3, 0, (300, 1_500)),
    Situation("loaded", 3, 4_000, (300, 1_500)),
    Situation("idle, 5 voters", 5, 0, (300, 1_500)),
    Situation("loaded, 5 voters", 5, 4_000, (300, 1_500)),
    Situation("idle, 20 ms apart", 3, 0, (18_000, 22_000)),
    Situation("loaded, 20 ms apart", 3, 20_000, (18_000, 22_000)),
    Situation("distant observers", 3, 20_000, (300, 1_500), observers=3),
)


@dataclass(frozen=True, slots=True)
class Death:
    """The result of one death. Times in ms from the death on; -1 for never."""

    write_ms: int
    elections: int
    """How far the epoch rose; 1 where no vote was split."""
    found_ms: tuple[int, ...] = ()
    """When each observer had the next write."""


@dataclass(slots=True)
class Report:
    """All deaths of one situation."""

    situation: Situation
    deaths: list[Death] = field(default_factory=list)

    def percentile(self, percent: float) -> int:
        """Return a percentile of the times to the next write.

        A write that never came is longest.
        """
        times = sorted(each.write_ms if each.write_ms >= 0 else 1 << 30 for each in self.deaths)
        return times[min(len(times) - 1, int(len(times) * percent / 100))]

    @property
    def split_share(self) -> float:
        """Return the share of the deaths that took more than one election."""
        return sum(each.elections != 1 for each in self.deaths) / len(self.deaths)

    @property
    def found_max_ms(self) -> int:
        """Return the slowest observer's time; -1 without observers or if one found no leader."""
        times = [ms for each in self.deaths for ms in each.found_ms]
        return -1 if -1 in times else max(times, default=-1)


class SilentDeath(Population):
    """One cluster on virtual time. Single use: construct, then ``run``."""

    def __init__(self, seed: int, situation: Situation) -> None:
        root = SeededRandom(seed)
        options = Options(voters=(situation.voters,), observers=(situation.observers,))
        super().__init__(root, Trace(is_kept=False), options)
        shortest, longest = situation.delay_us
        self.plan = FaultPlan(
            loss=0.0, duplication=0.0, delay_min_us=shortest, delay_max_us=longest, straggle=0.0,
            disk_min_us=1_000, disk_max_us=8_000, disk_stall=0.0, fault_every_us=1,
            drift_per_mille=0,
        )  # fmt: skip
        config = QuorumConfig()
        self.settings = Settings(config, LogConfig(), SnapshotConfig(), idle_ms=500)
        self.run_observer.config = config
        self._situation = situation
        self._rng = SeededRandom(root.getrandbits(64))
        self._servers = {each: self._some_servers() for each in self.observer_ids}
        self.settle(root)

    def servers_of(self, node_id: NodeId) -> tuple[NodeId, ...]:
        return self._servers.get(node_id, self.bootstrap_servers)

    def _some_servers(self) -> tuple[NodeId, ...]:
        """Draw servers with at least one live one, or no observer would find the first leader."""
        voters = list(self.bootstrap_servers)
        self._rng.shuffle(voters)
        gone = tuple(NOWHERE - place for place in range(self._rng.randint(0, 3)))
        return (*gone, *voters[: self._rng.randint(1, len(voters))])

    def run(self) -> Death:
        """Elect a leader, load it, let it die, and measure what follows."""
        for member in self.members.values():
            member.boot()
        for each in self.observer_ids:
            for other in self.members:
                self.network.slow(each, other, self._rng.randint(50_000, 500_000))
        self._load()
        leader = self._wait_for_leader(0, _ELECTED_MAX_US)
        if leader is None or leader.replica is None:
            return Death(-1, -1)
        self._run_until(self.scheduler.now_us + self._rng.randint(4_000_000, 6_000_000))
        if not self._wait_until_observers_follow():
            return Death(-1, -1)
        epoch, died_us = leader.replica.node.epoch, self.scheduler.now_us
        self._fall_silent(leader)
        return self._aftermath(leader.id, epoch, died_us)

    def _fall_silent(self, leader: Member) -> None:
        if self._rng.random() < 0.5:
            leader.pause(_FOREVER_US)
        else:
            rest = [each for each in self.members if each != leader.id]
            self.network.cut([leader.id], rest, both_ways=True)

    def _aftermath(self, dead: NodeId, epoch: int, died_us: int) -> Death:
        """Write until a write is acknowledged, then wait until all observers have it."""
        answers: list[Answer] = []
        end_us = died_us + _WRITE_MAX_US
        while self.scheduler.now_us < end_us:
            leader = self._wait_for_leader(dead, end_us)
            if leader is None or leader.replica is None:
                break
            node = leader.replica.node
            self._write(leader, answers)
            asked_us = self.scheduler.now_us
            while not answers and self.scheduler.now_us < asked_us + _ANSWER_MAX_US:
                self._run_until(self.scheduler.now_us + _SLICE_US)
            if answers and answers[-1].code == ErrorCode.NONE:
                write_ms, elections = (self.scheduler.now_us - died_us) // 1000, node.epoch - epoch
                found = self._wait_for_observers(answers[-1].offset, died_us)
                return Death(write_ms, elections, found)
        return Death(-1, -1)

    def _wait_for_observers(self, offset: int, died_us: int) -> tuple[int, ...]:
        found: dict[NodeId, int] = {}
        end_us = died_us + FOUND_MAX_MS * 1000
        while len(found) < len(self.observer_ids) and self.scheduler.now_us < end_us:
            self._run_until(self.scheduler.now_us + _SLICE_US)
            for each in self.observer_ids:
                replica = self.members[each].replica
                if each in found or replica is None:
                    continue
                if replica.node.high_watermark > offset:
                    found[each] = (self.scheduler.now_us - died_us) // 1000
        return tuple(found.get(each, -1) for each in self.observer_ids)

    def _wait_until_observers_follow(self) -> bool:
        """Return whether each observer has records; before, it may know no voter but the leader."""
        end_us = self.scheduler.now_us + FOUND_MAX_MS * 1000
        observers = [self.members[each] for each in self.observer_ids]
        while self.scheduler.now_us < end_us:
            if all(each.replica and each.replica.node.high_watermark > 0 for each in observers):
                return True
            self._run_until(self.scheduler.now_us + _SLICE_US)
        return False

    def _wait_for_leader(self, dead: NodeId, end_us: int) -> Member | None:
        while self.scheduler.now_us < end_us:
            for member in self.members.values():
                replica = member.replica
                if member.id != dead and replica is not None and replica.node.can_write:
                    return member
            self._run_until(self.scheduler.now_us + _SLICE_US)
        return None

    def _run_until(self, end_us: int) -> None:
        while self.scheduler.now_us < end_us:
            self.scheduler.step()

    def _write(self, member: Member, answers: list[Answer]) -> None:
        answers.clear()
        member.serve(
            "write",
            lambda replica: replica.controller.submit(
                InitProducerId(), RequestContext("write"), answers.append
            ),
        )

    def _load(self) -> None:
        """Write to the present leader repeatedly.

        This also advances the time of an idle cluster.
        """
        every_us = self._situation.write_every_us
        for member in self.members.values():
            replica = member.replica
            if every_us and replica is not None and replica.node.can_write:
                self._write(member, [])
        self.scheduler.after(every_us or 100_000, self._load)


def measured(situation: Situation, deaths: int, first_seed: int = 1) -> Report:
    """Run so many deaths in one situation, from consecutive seeds."""
    report = Report(situation)
    for seed in range(first_seed, first_seed + deaths):
        report.deaths.append(SilentDeath(seed, situation).run())
    return report


def row_of(report: Report) -> dict[str, object]:
    """Return one row of the table."""
    row: dict[str, object] = {
        "situation": report.situation.name,
        "deaths": len(report.deaths),
        "p50_ms": report.percentile(50),
        "p95_ms": report.percentile(95),
        "max_ms": report.percentile(100),
        "split": f"{report.split_share:.1%}",
    }
    if report.situation.observers:
        row["observers_max_ms"] = report.found_max_ms
    return row


def problems(reports: Sequence[Report]) -> list[str]:
    """Return one sentence for each limit that a situation exceeds."""
    found = []
    median_max_ms = MEDIAN_MAX * QuorumConfig().fetch_timeout_ms
    for report in reports:
        name, p50 = report.situation.name, report.percentile(50)
        if p50 > median_max_ms:
            found.append(f"{name}: a median of {p50} ms, more than {median_max_ms:.0f}")
        if report.split_share > SPLIT_MAX:
            found.append(
                f"{name}: {report.split_share:.1%} took a second election, "
                f"more than {SPLIT_MAX:.0%}"
            )
        if any(ms < 0 for death in report.deaths for ms in death.found_ms):
            found.append(f"{name}: an observer found no leader within {FOUND_MAX_MS} ms")
    return found


def main(arguments: list[str]) -> int:
    """Print the table; return 1 if there are ``problems``, which are printed to stderr."""
    parser = argparse.ArgumentParser(prog="simulation.silent_death", description=__doc__)
    parser.add_argument("-n", "--deaths", type=int, default=100, help="in each situation")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    options = parser.parse_args(arguments)
    reports = []
    for situation in SITUATIONS:
        reports.append(measured(situation, options.deaths))
        if options.output == "table":
            row = row_of(reports[-1])
            sys.stdout.write("  ".join(f"{name} {value}" for name, value in row.items()) + "\n")
            sys.stdout.flush()
    if options.output == "json":
        rows = [row_of(each) for each in reports]
        sys.stdout.write(json.dumps({"rows": rows}, indent=1) + "\n")
    found = problems(reports)
    for sentence in found:
        sys.stderr.write(f"{sentence}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

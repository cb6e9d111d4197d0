"""One attack on the leader of a real cluster, and what honest clients and operators notice."""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from quorate.client.client import Client
from quorate.demo.local_cluster import HOST, LocalNode
from quorum.v1 import commands_pb2 as wire
from tests.integration.processes import ROOT, Processes
from tests.integration.traffic import CONFIG

WRITE_PAUSE_SECONDS = 0.03
SAMPLE_SECONDS = 0.25
WRITE_SECONDS_MAX = 15.0
NEWCOMER_BEGINS, NEWCOMER_MAX = 0.4, 0.4
"""Shares of the attack's duration: when a new client starts, and the limit of each of its calls, so
that the client ends before the attack does."""
LOG_BYTES_PER_MINUTE_MAX = 1_000_000
LOG_BYTES_SPARE = 50_000
"""What ordinary lines of a few seconds may add to that."""
MEMORY_RATIO_MAX = 2.0
LATENCY_RATIO_MAX = 5.0


@dataclass(frozen=True, slots=True)
class Attack:
    """A row: which program, at which port, and how it shows that it took place."""

    name: str
    took_place: Callable[[Mapping[str, int], Mapping[str, float]], bool]
    """Of the attack's own counts and the highest values of the leader's metrics during it."""
    on_metrics_port: bool = False
    ended_min: int = 0
    """Calls that the node must have ended by itself meanwhile, and so got their places back."""


def at_most_refused(queue: str) -> Callable[[Mapping[str, int], Mapping[str, float]], bool]:
    """The attacker took all the places it could get and wanted more."""
    return lambda _, seen: seen[f'quorate_queue_rejections_total{{queue="{queue}"}}'] > 0


ATTACKS = (
    Attack("begins", lambda counts, _: counts["begun"] >= 400 and counts["connects"] <= 32),
    Attack("votes", lambda counts, _: counts["begun"] >= 4 and counts.get("OK", 0) == 0),
    Attack(
        "stalled_messages",
        lambda counts, seen: (
            counts["bytes"] > 4 << 20 and seen['quorate_queue_size{queue="client_messages"}'] >= 8
        ),
        ended_min=30,
    ),
    Attack("write_streams", at_most_refused("write_streams")),
    Attack("held_reads", at_most_refused("held_reads")),
    Attack("slow_metrics", lambda counts, _: counts["dropped"] > 10, on_metrics_port=True),
    Attack("describe_image", lambda counts, _: counts.get("OK", 0) >= 60),
    Attack("peer_streams", at_most_refused("peer_streams")),
)
BY_NAME = {attack.name: attack for attack in ATTACKS}


@dataclass
class Honest:
    """Writes one after the other from the same process, and how long each took."""

    seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    async def write(self, client: Client, until: Callable[[], bool]) -> None:
        number = 0
        while not until():
            number += 1
            began = time.monotonic()
            try:
                await client.set_config(
                    wire.CONFIG_RESOURCE_TYPE_BROKER, "", CONFIG, str(1000 + number)
                )
            except Exception as error:
                self.failures.append(repr(error))
            self.seconds.append(time.monotonic() - began)
            await asyncio.sleep(WRITE_PAUSE_SECONDS)

    @property
    def p99(self) -> float:
        return statistics.quantiles(self.seconds, n=100, method="inclusive")[98]


@dataclass
class Watch:
    """What an operator sees of all nodes during a phase."""

    cluster: Processes
    leader: LocalNode
    memory: dict[int, int] = field(default_factory=dict)
    probes: int = 0
    unanswered: list[str] = field(default_factory=list)
    seen: dict[str, float] = field(default_factory=dict)

    def sample(self) -> None:
        for node in self.cluster.voters:
            assert node.process is not None
            used = psutil.Process(node.process.pid).memory_info().rss
            self.memory[node.id] = max(used, self.memory.get(node.id, 0))
            for path in ("/livez", "/readyz"):
                self.probes += 1
                status, text = self.cluster._get(node, path)
                # Not ready is an answer, too: a follower is a record behind now and then.
                if status == 0 or (path == "/livez" and status != 200):
                    self.unanswered.append(f"node {node.id} {path}: {status} {text[:200]}")
        for line in self.cluster.metrics(self.leader).splitlines():
            name, _, value = line.rpartition(" ")
            if name.startswith("quorate_queue_"):
                self.seen[name] = max(float(value), self.seen.get(name, 0.0))

    async def go_on(self, until: Callable[[], bool]) -> None:
        while not until():
            await asyncio.to_thread(self.sample)
            await asyncio.sleep(SAMPLE_SECONDS)


@dataclass(frozen=True, slots=True)
class Found:
    """Everything that is evaluated."""

    counts: Mapping[str, int]
    seen: Mapping[str, float]
    epochs: tuple[float | None, float | None]
    calm: Honest
    attacked: Honest
    memory_ratio: float
    probes: int
    unanswered: Sequence[str]
    log_bytes: int
    newcomer_writes: bool

    def problems(self, attack: Attack, seconds: float, *, evaluates_time: bool) -> list[str]:
        """Return one sentence per forbidden effect of the attack; [] when there was none."""
        found = []
        if not attack.took_place(self.counts, self.seen):
            found.append(f"the attack did not take place: {dict(self.counts)} {self.seen}")
        if self.counts.get("ended", 0) < attack.ended_min:
            found.append(f"stalled calls kept their places: {dict(self.counts)}")
        if self.epochs[0] != self.epochs[1]:
            found.append(f"there was an election: epochs {self.epochs}")
        if self.attacked.failures:
            found.append(f"writes failed: {self.attacked.failures[:3]}")
        if not self.newcomer_writes:
            found.append("a new client could not write")
        if self.memory_ratio > MEMORY_RATIO_MAX:
            found.append(f"memory grew to {self.memory_ratio:.2f} of what it was")
        if self.unanswered:
            found.append(f"{len(self.unanswered)} of {self.probes} probes: {self.unanswered[:3]}")
        allowed = LOG_BYTES_SPARE + LOG_BYTES_PER_MINUTE_MAX * seconds / 60
        if self.log_bytes > allowed:
            found.append(f"the logs grew by {self.log_bytes} bytes in {seconds:g} s")
        if evaluates_time and self.attacked.p99 > LATENCY_RATIO_MAX * self.calm.p99:
            found.append(
                f"p99 of a write {self.attacked.p99 * 1000:.0f} ms, calm "
                f"{self.calm.p99 * 1000:.0f} ms"
            )
        return found

    def figures(self) -> str:
        """What the record of a campaign keeps."""
        return (
            f"p99 {self.calm.p99 * 1000:.0f} -> {self.attacked.p99 * 1000:.0f} ms, memory "
            f"x{self.memory_ratio:.2f}, probes {self.probes - len(self.unanswered)}/{self.probes}, "
            f"log {self.log_bytes} bytes, elections {int(self.epochs[0] != self.epochs[1])}"
        )

    def line(self, attack: Attack) -> str:
        """The figures on one line."""
        return (
            f"{attack.name}: p99 {self.calm.p99 * 1000:.1f} -> {self.attacked.p99 * 1000:.1f} ms, "
            f"memory x{self.memory_ratio:.2f}, probes {self.probes - len(self.unanswered)}"
            f"/{self.probes}, log {self.log_bytes} bytes, epochs {self.epochs}, "
            f"attack {dict(self.counts)}"
        )


def run_attack(cluster: Processes, attack: Attack, *, calm_seconds: float, seconds: float) -> Found:
    """Watch the cluster without load, then under the attack on its leader."""
    return asyncio.run(_run(cluster, attack, calm_seconds, seconds))


async def _run(cluster: Processes, attack: Attack, calm_seconds: float, seconds: float) -> Found:
    leader = await asyncio.to_thread(cluster.leader)
    before = await asyncio.to_thread(cluster.metric, leader, "quorate_raft_epoch")
    async with Client(
        cluster.addresses, client_id="honest", timeout_seconds=WRITE_SECONDS_MAX
    ) as client:
        calm, quiet = Honest(), Watch(cluster, leader)
        calm_end = time.monotonic() + calm_seconds
        await asyncio.gather(
            calm.write(client, lambda: time.monotonic() > calm_end),
            quiet.go_on(lambda: time.monotonic() > calm_end),
        )
        logged = _log_bytes(cluster)
        port = leader.metrics_port if attack.on_metrics_port else leader.port
        attacker = subprocess.Popen(
            [sys.executable, "-m", ATTACK_MODULE, attack.name, HOST, str(port), str(seconds)],
            cwd=ROOT, env=cluster.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        attacked, watch = Honest(), Watch(cluster, leader)
        has_ended = lambda: attacker.poll() is not None  # noqa: E731 - one condition for three
        try:
            *_, newcomer = await asyncio.gather(
                attacked.write(client, has_ended),
                watch.go_on(has_ended),
                _newcomer(leader, seconds),
            )
        finally:
            if attacker.poll() is None:
                attacker.kill()
        out, _ = attacker.communicate()
    after = await asyncio.to_thread(cluster.metric, leader, "quorate_raft_epoch")
    return Found(
        counts=json.loads(out or b"{}"),
        seen=watch.seen,
        epochs=(before, after),
        calm=calm,
        attacked=attacked,
        memory_ratio=max(watch.memory[each] / quiet.memory[each] for each in quiet.memory),
        probes=watch.probes,
        unanswered=watch.unanswered,
        log_bytes=_log_bytes(cluster) - logged,
        newcomer_writes=newcomer,
    )


ATTACK_MODULE = "tests.integration.attacks"


async def _newcomer(leader: LocalNode, seconds: float) -> bool:
    """Whether a client that was not there before can write and read at the attacked node."""
    await asyncio.sleep(seconds * NEWCOMER_BEGINS)
    patience = seconds * NEWCOMER_MAX
    async with Client([leader.address], client_id="newcomer", timeout_seconds=patience) as client:
        try:
            await client.set_config(wire.CONFIG_RESOURCE_TYPE_BROKER, "", CONFIG, "77")
            await client.describe_cluster()
        except Exception:
            return False
    return True


def _log_bytes(cluster: Processes) -> int:
    return sum(Path(node.log_path).stat().st_size for node in cluster.voters)

"""Damage to the files of live nodes, hundreds of times, with a check of each.

All steps use the same cluster. A step writes, and damages files of its victims while they run or
are stopped. It restarts the victims and makes three comparisons: the reports with the damage, the
images of all nodes with one another, and the served values with the acknowledged writes. A step
has one victim, or two in a cluster where two are a minority of the voters. The next step begins
when all nodes have caught up.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from quorate.cli.exits import Exit
from quorate.client.client import Client
from quorate.client.queries import LINEARIZABLE
from quorate.demo.local_cluster import ClusterError, LocalNode
from quorum.v1 import commands_pb2 as wire
from tests.campaigns.damage_check import Outcome, Start, evaluated, images_differ, lost_writes
from tests.campaigns.file_damage import MANNERS, TOGETHER, Damage, Damager, files_of, write
from tests.campaigns.report import Report, Say
from tests.integration.processes import Processes

SETTINGS: dict[str, object] = {
    "log.segment_bytes": 16 << 10,
    "log.index_interval_bytes": 1024,
    "snapshot.max_bytes_between": 24 << 10,
    "snapshot.min_changed_records_ratio": 0.2,
    "scrub.bytes_per_second": 64 << 20,
    "scrub.pause_ms": 1_000,
    "quorum.election_timeout_ms": 500,
    "quorum.fetch_timeout_ms": 3_000,
}
"""Many small files of every kind, and scrubber passes a second apart."""
NODES_OF: Mapping[int, dict[str, int]] = {1: {"voters": 3}, 2: {"voters": 5, "observers": 1}}
"""The cluster's size by number of victims; victims are always a minority of the voters."""
WAYS = ("stopped", "killed", "running")
KEYS = 64
WRITES_EACH = 6
FILL = 300
VALUE_BYTES = 120
LEADER_SHARE = 0.25
NOTICE_SECONDS = 1.5
STARTS_MAX = 4
WHOLE_MIN = 100
"""A run of at least so many damages must show every manner and every outcome."""
READY_SECONDS = 60.0
RESOURCE = wire.CONFIG_RESOURCE_TYPE_CLIENT_METRICS


@dataclass
class Tally:
    """Counts of damages by manner and by how the node was stopped, and of their outcomes."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    outcomes: Counter[tuple[str, Outcome]] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    restarts: int = 0
    ended_running: int = 0
    skipped: int = 0


class DamagesCampaign:
    """Use it once, on a started cluster with ``SETTINGS``."""

    def __init__(
        self, cluster: Processes, *, seed: int, damages: int, announce: Say, victims: int = 1
    ) -> None:
        """``victims``: the number of nodes damaged at once, fewer than half of the voters."""
        if 2 * victims >= len(cluster.voters):
            raise ValueError(f"{victims} of {len(cluster.voters)} voters are not a minority")
        self._victims = victims
        self._cluster = cluster
        self._seed = seed
        self._wanted = damages
        self._announce = announce
        self._rng = random.Random(seed)
        self._tally = Tally()
        self._problems: list[str] = []
        self._written: dict[str, str] = {}
        self._number = 0

    async def run(self) -> Report:
        """Do ``count`` damages one after the other; return the report."""
        began = time.monotonic()
        cluster = self._cluster
        async with Client(
            cluster.addresses, client_id="honest", timeout_seconds=READY_SECONDS
        ) as client:
            await self._write(client, FILL)
            turn = 0
            while self._tally.counts.total() < self._wanted:
                turn += 1
                manner = (*MANNERS, *TOGETHER)[turn % (len(MANNERS) + len(TOGETHER))]
                route = WAYS[self._rng.randrange(len(WAYS))]
                await self._step(client, manner, route)
                if turn % 20 == 0:
                    done = self._tally.counts.total()
                    self._announce(f"{done:4} damages, {len(self._problems)} problems")
                if turn > 2 * self._wanted:
                    break
            leader = await asyncio.to_thread(cluster.leader)
            await self._check_writes(client, leader.address)
        return self._report(time.monotonic() - began)

    # ------------------------------------------------------------------ one step

    async def _step(self, client: Client, manner: str, route: str) -> None:
        cluster, tally = self._cluster, self._tally
        leader = await asyncio.to_thread(cluster.leader)
        others = [node for node in cluster.nodes.values() if node is not leader]
        victims = self._rng.sample(others, self._victims)
        if self._rng.random() < LEADER_SHARE:
            victims[0] = leader
        await self._write(client, WRITES_EACH)
        intact = [each.data_dir for each in cluster.nodes.values() if each not in victims]
        epoch = await asyncio.to_thread(cluster.metric, leader, "quorate_raft_epoch")
        if route != "running":
            await self._end(victims, route)
        logged = {node.id: node.log_path.stat().st_size for node in victims}
        faults = {
            node.id: Damager(node.data_dir, intact, self._rng).some(manner) for node in victims
        }
        if route == "running":
            await asyncio.gather(*map(self._await_notice, victims))
        await self._write(client, 2)
        labels = {
            node.id: f"{' and '.join(map(str, faults[node.id]))}, node {node.id} {route}"
            for node in victims
        }
        outcomes = await asyncio.gather(
            *(
                self._restart(node, faults[node.id], labels[node.id], logged[node.id], route, epoch)
                for node in victims
            )
        )
        for node, outcome in zip(victims, outcomes, strict=True):
            tally.counts[manner, route] += 1
            tally.kinds.update(damage.kind for damage in faults[node.id])
            if outcome is not None:
                tally.outcomes[manner, outcome] += 1
        await self._come_level(client, victims, "; ".join(labels.values()))

    async def _end(self, victims: list[LocalNode], route: str) -> None:
        if route == "killed":
            await asyncio.to_thread(self._cluster.kill_together, victims)
            return
        for node in victims:
            code = await asyncio.to_thread(self._cluster.stop, node)
            if code:
                self._problems.append(f"node {node.id} ended with {code} when asked to stop")

    async def _await_notice(self, node: LocalNode) -> None:
        """Give a running node time to find the damage; it then ends with exit code 8."""
        deadline = time.monotonic() + NOTICE_SECONDS
        while node.is_running and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
        if node.is_running:
            await asyncio.to_thread(self._cluster.kill, node)
            return
        self._tally.ended_running += 1
        assert node.process is not None
        if node.process.returncode != Exit.DAMAGED:
            code = node.process.returncode
            self._problems.append(f"running node {node.id} ended with {code}: {node.log_tail(5)}")

    async def _restart(
        self, node: LocalNode, faults: list[Damage], label: str, logged: int, route: str,
        epoch: float | None,
    ) -> Outcome | None:  # fmt: skip
        """Start the node until it is ready; return the outcome of its damage."""
        first: Outcome | None = None
        for _ in range(STARTS_MAX):
            found = {damage.path: _content(damage.path) for damage in faults}
            begins = node.log_path.stat().st_size
            self._cluster.start(node)
            self._tally.restarts += 1
            code = await self._ready_or_ended(node)
            last_lines = _log_from(node, begins)
            start = Start(
                lines=_log_from(node, logged), last_lines=last_lines, exit_code=code, found=found,
                left={damage.path: _content(damage.path) for damage in faults},
                was_clean=route == "stopped",
            )  # fmt: skip
            if code is None:
                now = await asyncio.to_thread(self._cluster.metric, node, "quorate_raft_epoch")
                count = await asyncio.to_thread(_repaired, self._cluster, node)
                start = replace(start, repaired_count=count, epochs_changed=now != epoch)
            outcome, wrong = evaluated(faults, start)
            self._problems += [f"{label}: {each}" for each in wrong]
            first = first or outcome
            if code is None:
                return first
            text = "\n".join(last_lines)
            for damage in faults:
                if damage.path.name in text:
                    # As in docs/operations/recover.md: the operator restores the damaged file.
                    write(damage.path, damage.before)
            faults = [damage for damage in faults if damage.path.name not in text]
        self._problems.append(f"{label}: does not start again:\n{node.log_tail(6)}")
        return first

    async def _ready_or_ended(self, node: LocalNode) -> int | None:
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            if not node.is_running:
                assert node.process is not None
                return node.process.returncode
            if await asyncio.to_thread(self._cluster.is_ready, node):
                return None
            await asyncio.sleep(0.03)
        state = await asyncio.to_thread(self._cluster.readiness, node)
        self._problems.append(f"node {node.id} does not become ready: {state}")
        return None

    # ------------------------------------------------------------------ what must be the same

    async def _come_level(self, client: Client, victims: list[LocalNode], label: str) -> None:
        """Wait for the leader's position, then compare images and every acknowledged write."""
        await self._write(client, 1)
        deadline = time.monotonic() + READY_SECONDS
        seen: dict[int, tuple[int, bytes]] = {}
        while time.monotonic() < deadline:
            seen = {}
            for each in self._cluster.nodes.values():
                with contextlib.suppress(Exception):
                    async with Client([each.address], timeout_seconds=10.0) as own:
                        image = await own.describe_image()
                        seen[each.id] = (image.position.offset, image.state_digest)
            is_level = len({at for at, _ in seen.values()}) == 1
            if is_level and len(seen) == len(self._cluster.nodes):
                break
            if not all(node.is_running for node in victims):
                break
            await asyncio.sleep(0.05)
        else:
            self._problems.append(f"{label}: the nodes do not catch up: {seen}")
        if images_differ(seen):
            self._problems.append(f"{label}: the images differ: {seen}")
        for node in victims:
            if node.is_running:
                await self._check_writes(client, node.address, label)
                continue
            self._problems.append(f"{label}: node {node.id} ended again:\n{node.log_tail(4)}")
            self._cluster.start(node)
            with contextlib.suppress(ClusterError):
                await asyncio.to_thread(self._cluster.wait_ready, [node])

    async def _check_writes(self, client: Client, address: str, label: str = "at the end") -> None:
        """Compare every acknowledged write with what this node serves."""
        wanted = [(RESOURCE, name) for name in sorted(self._written)]
        async with Client([address], timeout_seconds=READY_SECONDS) as own:
            answer = await own.describe_configs(wanted, read=LINEARIZABLE)
        served = {
            each.resource.name: {entry.name: entry.value for entry in each.entries}.get("metrics")
            for each in answer.resources
        }
        if lost := lost_writes(self._written, served):
            self._problems.append(f"{label}: {len(lost)} acknowledged writes are lost: {lost[:5]}")

    async def _write(self, client: Client, count: int) -> None:
        async def one(number: int) -> None:
            name, value = f"subscription-{number % KEYS}", f"v{number}." + "x" * VALUE_BYTES
            await client.set_config(RESOURCE, name, "metrics", value)
            self._written[name] = value

        while count > 0:
            part = min(count, KEYS // 2)
            await asyncio.gather(*(one(self._number + each) for each in range(part)))
            self._number += part
            count -= part

    # ------------------------------------------------------------------ the report

    def _report(self, seconds: float) -> Report:
        tally = self._tally
        total = tally.counts.total()
        rows = []
        for manner in (*MANNERS, *TOGETHER):
            row: dict[str, object] = {"damage": manner}
            row |= {route: tally.counts[manner, route] for route in WAYS}
            row |= {each.name.lower(): tally.outcomes[manner, each] for each in Outcome}
            rows.append(row)
        figures: dict[str, object] = {
            "damages": total,
            "nodes damaged at once": self._victims,
            "restarts": tally.restarts,
            "acknowledged writes, all present": self._number,
            "running nodes that found the damage and ended": tally.ended_running,
        }
        for outcome in Outcome:
            figures[outcome.value] = sum(tally.outcomes[each["damage"], outcome] for each in rows)  # type: ignore[index]
        figures |= {f"damaged: {kind}": count for kind, count in sorted(tally.kinds.items())}
        name = "damages" if self._victims == 1 else f"damages of {self._victims} nodes at once"
        found = shortfalls(tally, self._wanted)
        return Report(name, self._seed, seconds, figures, rows, self._problems, found)


def shortfalls(tally: Tally, wanted: int) -> list[str]:
    """Return what is missing: damages, and in a whole run manners and outcomes."""
    total = tally.counts.total()
    found = [] if total >= wanted else [f"{total} damages, {wanted} were asked for"]
    if total < WHOLE_MIN:
        return found
    manners = {manner for manner, _ in tally.counts}
    outcomes = {outcome for _, outcome in tally.outcomes}
    found += [f"no {each}" for each in (*MANNERS, *TOGETHER) if each not in manners]
    found += [f"nothing {each.value}" for each in Outcome if each not in outcomes]
    return found


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _log_from(node: LocalNode, position: int) -> list[str]:
    with node.log_path.open("rb") as file:
        file.seek(position)
        return file.read().decode(errors="replace").splitlines()


def _repaired(cluster: Processes, node: LocalNode) -> float:
    total = 0.0
    for line in cluster.metrics(node).splitlines():
        name, _, value = line.rpartition(" ")
        if name.startswith("quorate_repaired_files_total"):
            total += float(value)
    return total


__all__ = ["SETTINGS", "DamagesCampaign", "files_of"]

"""Carries a schedule of faults out, and undoes each before the next of its lane."""

from __future__ import annotations

import asyncio
import random
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator

from quorate.cli.exits import Exit
from quorate.demo.local_cluster import ClusterError, LocalNode
from tests.chaos.cluster import ChaosCluster
from tests.chaos.disk import FULL, HANGS, SYNC_FAILS
from tests.chaos.proxy import CLIENT, Direction
from tests.chaos.schedule import Fault, Kind, Weights, draw_faults

DELAY_SECONDS_MAX = 0.3
FLAP_SECONDS = 0.15
DIES_SECONDS_MAX = 3.0
"""So long a node may take to notice that its disk fails, if it writes at all."""
_SWITCHES = {Kind.DISK_FULL: FULL, Kind.SYNC_FAILS: SYNC_FAILS, Kind.DISK_HANGS: HANGS}
_KILLS = frozenset({Kind.KILL, Kind.KILL_ALL, Kind.KILL_MAJORITY})


class Nemesis:
    """Use it once: ``run`` for a while, then look at ``counts`` and ``problems``."""

    def __init__(
        self,
        cluster: ChaosCluster,
        seed: int,
        weights: tuple[Weights, Weights],
        say: Callable[[str], None],
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []
        self._cluster = cluster
        self._say = say
        root = random.Random(seed)
        acts = (self._break_process, self._break_network)
        self._lanes: list[tuple[Iterator[Fault], Callable[[Fault], Awaitable[None]]]] = [
            (self._draw(root, lane), act) for lane, act in zip(weights, acts) if lane
        ]

    def _draw(self, root: random.Random, weights: Weights) -> Iterator[Fault]:
        rng = random.Random(root.getrandbits(64))
        return draw_faults(rng, weights, len(self._cluster.nodes))

    async def run(self, seconds: float, settle_seconds: float) -> None:
        """Break things for so long, then bring everything back.

        Raises:
            ClusterError: The nodes are not ready ``settle_seconds`` later.
        """
        deadline = asyncio.get_running_loop().time() + seconds
        async with asyncio.TaskGroup() as group:
            for faults, act in self._lanes:
                group.create_task(self._lane(faults, act, deadline))
        self._cluster.links.mend()
        for node in self._cluster.voters:
            if not node.is_running:
                await self._revive(node)
        await asyncio.to_thread(self._cluster.wait_ready, self._cluster.voters, settle_seconds)

    async def _lane(
        self, faults: Iterator[Fault], act: Callable[[Fault], Awaitable[None]], deadline: float
    ) -> None:
        loop = asyncio.get_running_loop()
        for fault in faults:
            if loop.time() + fault.calm_seconds + fault.seconds > deadline:
                return
            await asyncio.sleep(fault.calm_seconds)
            await act(fault)
            self.counts[fault.kind.value] += 1

    async def _target(self, fault: Fault) -> LocalNode:
        leader = None
        if fault.is_at_leader:
            leader = await asyncio.to_thread(self._cluster.find_leader)
        target = leader or self._cluster.voters[fault.place]
        who = " (the leader)" if leader else ""
        self._say(f"{fault.kind.value}: node {target.id}{who} for {fault.seconds:.1f} s")
        return target

    # ------------------------------------------------------------------ processes and disks

    async def _break_process(self, fault: Fault) -> None:
        node = await self._target(fault)
        if not node.is_running:
            await self._revive(node)
        if fault.kind in _KILLS:
            await self._kill(fault, node)
        elif fault.kind is Kind.STOP:
            await self._stop(fault, node)
        elif fault.kind is Kind.PAUSE:
            self._cluster.freeze(node)
            await asyncio.sleep(fault.seconds)
            self._cluster.thaw(node)
        else:
            await self._break_disk(fault, node)

    async def _kill(self, fault: Fault, node: LocalNode) -> None:
        voters = self._cluster.voters
        place = voters.index(node)
        count = {
            Kind.KILL: 1,
            Kind.KILL_MAJORITY: len(voters) // 2 + 1,
            Kind.KILL_ALL: len(voters),
        }[fault.kind]
        victims = [voters[(place + each) % len(voters)] for each in range(count)]
        for each in victims:
            self._cluster.life_ends(each)
        await asyncio.to_thread(self._cluster.kill_together, victims)
        await asyncio.sleep(fault.seconds * fault.amount)
        for each in victims:
            self._restart(each)

    async def _stop(self, fault: Fault, node: LocalNode) -> None:
        self._cluster.life_ends(node)
        try:
            status = await asyncio.to_thread(self._cluster.stop, node)
        except ClusterError as error:
            self.problems.append(str(error))
        else:
            # Before it serves, a process may not have got to its own handling of signals.
            is_early = status == -signal.SIGTERM and not self._cluster.has_served(node)
            if status not in (0, -signal.SIGKILL) and not is_early:
                self.problems.append(f"node {node.id} ended with {status} when asked to stop")
        await asyncio.sleep(fault.seconds * fault.amount)
        self._restart(node)

    async def _break_disk(self, fault: Fault, node: LocalNode) -> None:
        if fault.kind is not Kind.DISK_HANGS:
            self._cluster.life_ends(node)
        switch = node.folder / _SWITCHES[fault.kind]
        switch.touch()
        try:
            await asyncio.sleep(fault.seconds)
        finally:
            switch.unlink()
        if fault.kind is Kind.DISK_HANGS:
            return
        # It dies only if it wrote meanwhile; a new life either way.
        if node.is_running:
            await asyncio.to_thread(self._cluster.kill_together, [node])
        elif node.process is not None and node.process.returncode != Exit.DAMAGED:
            status = node.process.returncode
            self.problems.append(f"node {node.id} ended with {status} on {fault.kind.value}")
        self._restart(node)

    async def _revive(self, node: LocalNode) -> None:
        """A node that is down although nothing was done to it."""
        status = node.process.returncode if node.process else None
        self.problems.append(f"node {node.id} ended by itself with {status}:\n{node.log_tail()}")
        self._restart(node)

    def _restart(self, node: LocalNode) -> None:
        self._cluster.start(node)

    # ------------------------------------------------------------------ the network

    async def _break_network(self, fault: Fault) -> None:
        node = await self._target(fault)
        links = self._cluster.links
        inward, outward = self._peers(node)
        both = inward + outward
        client: list[Direction] = [(CLIENT, node.id), (node.id, CLIENT)]
        kind = fault.kind
        if kind is Kind.ISOLATE:
            links.hold(both)
        elif kind is Kind.ISOLATE_RESET:
            for source, target in inward:
                links.cut(source, target)
        elif kind is Kind.ONE_WAY_IN:
            links.hold(inward)
        elif kind is Kind.ONE_WAY_OUT:
            links.hold(outward)
        elif kind is Kind.PAIR:
            self._part(fault, inward)
        elif kind is Kind.DELAY:
            links.delay(both, DELAY_SECONDS_MAX * fault.amount)
        elif kind is Kind.FLAP:
            await self._flap(fault, both)
            return
        elif kind is Kind.CLIENT_RESET:
            links.cut(CLIENT, node.id)
        elif kind is Kind.CLIENT_ONE_WAY:
            links.hold(client[1:])
        elif kind is Kind.CLIENT_DELAY:
            links.delay(client, DELAY_SECONDS_MAX * fault.amount)
        await asyncio.sleep(fault.seconds)
        links.mend(both + client)

    def _peers(self, node: LocalNode) -> tuple[list[Direction], list[Direction]]:
        others = [each.id for each in self._cluster.voters if each is not node]
        return [(each, node.id) for each in others], [(node.id, each) for each in others]

    def _part(self, fault: Fault, inward: list[Direction]) -> None:
        source, target = inward[int(fault.amount * len(inward))]
        if fault.seconds > 1:
            self._cluster.links.cut(source, target)
        else:
            self._cluster.links.hold([(source, target), (target, source)])

    async def _flap(self, fault: Fault, both: list[Direction]) -> None:
        links = self._cluster.links
        for _ in range(max(1, int(fault.seconds / FLAP_SECONDS / 2))):
            links.hold(both)
            await asyncio.sleep(FLAP_SECONDS)
            links.mend(both)
            await asyncio.sleep(FLAP_SECONDS)

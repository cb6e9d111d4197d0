"""Carries out a schedule of faults, and ends each before the next one of its lane."""

from __future__ import annotations

import asyncio
import random
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

import psutil

from quorate.cli.exits import Exit
from quorate.demo.local_cluster import ClusterError, LocalNode
from tests.chaos.cluster import ChaosCluster
from tests.chaos.disk import FULL, HANGS, SYNC_FAILS, met_by
from tests.chaos.proxy import CLIENT, Direction
from tests.chaos.schedule import (
    DEPOSES_SECONDS,
    ISOLATES,
    Fault,
    Kind,
    Weights,
    draw_faults,
)
from tests.chaos.tally import Tally

DELAY_SECONDS_MAX = 0.3
FLAP_SECONDS = 0.15
DIES_SECONDS_MAX = 3.0
"""Seconds within which a node that writes must notice that its disk fails."""
_SWITCHES = {Kind.DISK_FULL: FULL, Kind.SYNC_FAILS: SYNC_FAILS, Kind.DISK_HANGS: HANGS}
_AT_CLIENTS = frozenset({Kind.CLIENT_RESET, Kind.CLIENT_ONE_WAY, Kind.CLIENT_DELAY})
_KILLS = frozenset({Kind.KILL, Kind.KILL_ALL, Kind.KILL_MAJORITY})


@dataclass(frozen=True, slots=True)
class Seen:
    """The observed effect of a fault."""

    has_effect: bool
    is_deposed: bool | None = None
    """Of a leader that was cut off for long enough: whether another one has replaced it."""


Act = Callable[[Fault], Awaitable[Seen]]
"""Carries out a fault."""


class Nemesis:
    """Use it once: ``run`` for a while, then read ``tally`` and ``problems``.

    A fault may have no effect, because its node is down already or nothing was sent. An effect is
    an observation: a process ended or stopped, a call met the fault of its disk, or data or a
    connection met a rule of the network.
    """

    def __init__(
        self,
        cluster: ChaosCluster,
        seed: int,
        weights: tuple[Weights, Weights],
        announce: Callable[[str], None],
    ) -> None:
        self.tally = Tally()
        self.problems: list[str] = []
        self._cluster = cluster
        self._announce = announce
        root = random.Random(seed)
        acts: tuple[Act, Act] = (self._break_process, self._break_network)
        self._lanes: list[tuple[Iterator[Fault], Act]] = [
            (self._draw(root, lane), act) for lane, act in zip(weights, acts) if lane
        ]
        self._begun: Counter[Act] = Counter()
        self._ended: Counter[Act] = Counter()
        """Number of faults by lane."""

    def _draw(self, root: random.Random, weights: Weights) -> Iterator[Fault]:
        rng = random.Random(root.getrandbits(64))
        return draw_faults(rng, weights, len(self._cluster.nodes))

    async def run(self, seconds: float, settle_seconds: float) -> None:
        """Inject faults for so many seconds, then end them all and restart all nodes.

        Raises:
            ClusterError: The nodes are not ready ``settle_seconds`` later.
        """
        deadline = asyncio.get_running_loop().time() + seconds
        async with asyncio.TaskGroup() as group:
            for faults, act in self._lanes:
                group.create_task(self._lane(faults, act, deadline))
        self._cluster.links.heal()
        for node in self._cluster.voters:
            if not node.is_running:
                await self._revive(node)
        await asyncio.to_thread(self._cluster.wait_ready, self._cluster.voters, settle_seconds)
        self.problems += self.tally.without_effect()

    async def _lane(self, faults: Iterator[Fault], act: Act, deadline: float) -> None:
        loop = asyncio.get_running_loop()
        for fault in faults:
            if loop.time() + fault.calm_seconds + fault.seconds > deadline:
                return
            await asyncio.sleep(fault.calm_seconds)
            is_disturbed = await self._watch_for_others(act)
            self._begun[act] += 1
            seen = await act(fault)
            self._ended[act] += 1
            is_beside_another = is_disturbed()
            self.tally.add(
                fault.kind.value,
                has_effect=seen.has_effect,
                seconds=fault.seconds,
                is_beside_another=is_beside_another,
            )
            if seen.is_deposed is not None:
                self.tally.add_isolated_leader(
                    is_deposed=seen.is_deposed, is_disturbed=is_beside_another
                )
            if not seen.has_effect:
                beside = ", another fault may explain it" if is_beside_another else ""
                self._announce(f"{fault.kind.value}: no effect{beside}")

    async def _watch_for_others(self, act: Act) -> Callable[[], bool]:
        """Call before a fault; the result says later whether something else may explain a miss.

        Another explanation exists if a node was not ready before the fault, or if the other lane
        has injected a fault since. The state of the nodes afterwards proves nothing: a follower
        that has lost its leader is not ready.
        """
        ended_before = self._ended.total() - self._ended[act]

        def has_broken() -> bool:
            return self._begun.total() - self._begun[act] > ended_before

        # During another fault no node is asked: a paused one would not answer.
        is_calm = not has_broken() and await asyncio.to_thread(self._all_ready)
        return lambda: not is_calm or has_broken()

    def _all_ready(self) -> bool:
        return all(map(self._cluster.is_ready, self._cluster.voters))

    async def _target(self, fault: Fault) -> tuple[LocalNode, bool]:
        """Return the node to break, and whether it leads."""
        leader = None
        if fault.is_at_leader:
            leader = await asyncio.to_thread(self._cluster.find_leader)
        target = leader or self._cluster.voters[fault.place]
        who = " (the leader)" if leader else ""
        self._announce(f"{fault.kind.value}: node {target.id}{who} for {fault.seconds:.1f} s")
        return target, leader is not None

    # ------------------------------------------------------------------ processes and disks

    async def _break_process(self, fault: Fault) -> Seen:
        node, _ = await self._target(fault)
        if not node.is_running:
            await self._revive(node)
        if fault.kind in _KILLS:
            return Seen(await self._kill(fault, node))
        if fault.kind is Kind.STOP:
            return Seen(await self._stop(fault, node))
        if fault.kind is Kind.PAUSE:
            return Seen(await self._pause(fault, node))
        return Seen(await self._break_disk(fault, node))

    async def _pause(self, fault: Fault, node: LocalNode) -> bool:
        assert node.process is not None
        process = psutil.Process(node.process.pid)
        self._cluster.freeze(node)
        try:
            await asyncio.sleep(fault.seconds)
            return process.status() == psutil.STATUS_STOPPED
        finally:
            self._cluster.thaw(node)

    async def _kill(self, fault: Fault, node: LocalNode) -> bool:
        voters = self._cluster.voters
        place = voters.index(node)
        count = {
            Kind.KILL: 1,
            Kind.KILL_MAJORITY: len(voters) // 2 + 1,
            Kind.KILL_ALL: len(voters),
        }[fault.kind]
        victims = [voters[(place + each) % len(voters)] for each in range(count)]
        for each in victims:
            self._cluster.incarnation_ends(each)
        were_running = all(each.is_running for each in victims)
        await asyncio.to_thread(self._cluster.kill_together, victims)
        have_died = not any(each.is_running for each in victims)
        await asyncio.sleep(fault.seconds * fault.amount)
        for each in victims:
            self._restart(each)
        return were_running and have_died

    async def _stop(self, fault: Fault, node: LocalNode) -> bool:
        self._cluster.incarnation_ends(node)
        was_running = node.is_running
        try:
            status = await asyncio.to_thread(self._cluster.stop, node)
        except ClusterError as error:
            self.problems.append(str(error))
        else:
            # A process that does not serve yet may not have installed its signal handlers.
            is_early = status == -signal.SIGTERM and not self._cluster.has_served(node)
            if status not in (0, -signal.SIGKILL) and not is_early:
                self.problems.append(f"node {node.id} ended with {status} when asked to stop")
        has_ended = not node.is_running
        await asyncio.sleep(fault.seconds * fault.amount)
        self._restart(node)
        return was_running and has_ended

    async def _break_disk(self, fault: Fault, node: LocalNode) -> bool:
        if fault.kind is not Kind.DISK_HANGS:
            self._cluster.incarnation_ends(node)
        switch = node.folder / _SWITCHES[fault.kind]
        switch.touch()
        try:
            await asyncio.sleep(fault.seconds)
        finally:
            switch.unlink()
            met = met_by(switch)
            has_effect = met.exists()
            met.unlink(missing_ok=True)
        if fault.kind is Kind.DISK_HANGS:
            return has_effect
        # The process ends only if it wrote meanwhile. It is restarted in any case.
        if node.is_running:
            await asyncio.to_thread(self._cluster.kill_together, [node])
        elif node.process is not None and node.process.returncode != Exit.DAMAGED:
            status = node.process.returncode
            self.problems.append(f"node {node.id} ended with {status} on {fault.kind.value}")
        self._restart(node)
        return has_effect

    async def _revive(self, node: LocalNode) -> None:
        """Report a node that is down although no fault has stopped it."""
        status = node.process.returncode if node.process else None
        self.problems.append(f"node {node.id} ended by itself with {status}:\n{node.log_tail()}")
        self._restart(node)

    def _restart(self, node: LocalNode) -> None:
        self._cluster.start(node)

    # ------------------------------------------------------------------ the network

    async def _break_network(self, fault: Fault) -> Seen:
        node, leads = await self._target(fault)
        links = self._cluster.links
        inward, outward = self._peers(node)
        client: list[Direction] = [(CLIENT, node.id), (node.id, CLIENT)]
        scope = client if fault.kind in _AT_CLIENTS else inward + outward
        before = links.affected(scope)
        is_deposed: bool | None = None
        if fault.kind is Kind.FLAP:
            await self._flap(fault, scope)
        else:
            self._apply(fault, inward, outward, client)
            await asyncio.sleep(fault.seconds)
            if leads and fault.kind in ISOLATES and fault.seconds >= DEPOSES_SECONDS:
                leader = await asyncio.to_thread(self._cluster.find_leader)
                is_deposed = leader is not None and leader is not node
            links.heal(scope)
        return Seen(links.affected(scope) > before, is_deposed)

    def _apply(
        self,
        fault: Fault,
        inward: list[Direction],
        outward: list[Direction],
        client: list[Direction],
    ) -> None:
        links = self._cluster.links
        match fault.kind:
            case Kind.ISOLATE:
                links.hold(inward + outward)
            case Kind.ISOLATE_RESET:
                for source, target in inward:
                    links.cut(source, target)
            case Kind.ONE_WAY_IN:
                links.hold(inward)
            case Kind.ONE_WAY_OUT:
                links.hold(outward)
            case Kind.PAIR:
                self._part(fault, inward)
            case Kind.DELAY:
                links.delay(inward + outward, DELAY_SECONDS_MAX * fault.amount)
            case Kind.CLIENT_RESET:
                links.cut(*client[0])
            case Kind.CLIENT_ONE_WAY:
                links.hold(client[1:])
            case Kind.CLIENT_DELAY:
                links.delay(client, DELAY_SECONDS_MAX * fault.amount)

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
            links.heal(both)
            await asyncio.sleep(FLAP_SECONDS)

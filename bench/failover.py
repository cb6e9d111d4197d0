"""Time from SIGKILL of the leader to the next acknowledged write, for Quorate and the peers."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bench.closed_loop import config_change
from bench.loop import loop_factory
from quorate.client.client import Client
from quorate.demo.local_cluster import LocalCluster, LocalNode

_FIRST_NUMBER = 1 << 40
_ACKNOWLEDGED_BEFORE = 20
_PEER_SECONDS_MAX = 30.0


@dataclass(frozen=True, slots=True)
class Failover:
    """One kill of a leader; both times are seconds of the monotonic clock."""

    killed_at: float
    answered_at: float
    """Time of the first acknowledgement after the kill, of a write begun at any time."""

    @property
    def ms(self) -> float:
        """Milliseconds without an acknowledgement."""
        return (self.answered_at - self.killed_at) * 1000


class Killable(Protocol):
    """A peer system that can lose its leader."""

    def failover_command(self) -> Sequence[str]:
        """Return a command that prints the wall time of every acknowledgement, in nanoseconds."""

    def leader(self) -> int:
        """Return the number of the leader, once all members are up."""

    def kill(self, number: int) -> None:
        """Send SIGKILL and wait until the process has ended."""

    def restart(self, number: int) -> None:
        """Restart the member and wait until all members are up."""


async def _one_failover(
    cluster: LocalCluster, client: Client, numbers: itertools.count[int]
) -> Failover:
    killed_at = 0.0
    acknowledged = 0
    leader: LocalNode | None = None
    while True:
        await client.write(config_change(next(numbers)))
        now = time.monotonic()
        if leader is not None:
            break
        acknowledged += 1
        if acknowledged == _ACKNOWLEDGED_BEFORE:
            leader = next(n for n in cluster.nodes.values() if n.address == client.leader)
            killed_at = time.monotonic()
            cluster.kill(leader)
    cluster.start(leader)
    await asyncio.to_thread(cluster.wait_ready, list(cluster.nodes.values()))
    return Failover(killed_at, now)


def measure_failover(cluster: LocalCluster, *, rounds: int) -> list[Failover]:
    """Kill the leader ``rounds`` times; the topics of ``create_topics`` must exist."""

    async def run() -> list[Failover]:
        numbers = itertools.count(_FIRST_NUMBER)
        async with Client(cluster.addresses, client_id="bench", reason="failover") as client:
            return [await _one_failover(cluster, client, numbers) for _ in range(rounds)]

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(run())


def measure_peer_failover(peer: Killable, *, rounds: int) -> list[float]:
    """Kill a peer system's leader ``rounds`` times; return milliseconds."""
    results: list[float] = []
    command = peer.failover_command()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        times: list[int] = []
        arrived = threading.Condition()

        def read() -> None:
            assert process.stdout is not None
            with contextlib.suppress(ValueError):
                for line in process.stdout:
                    with arrived:
                        times.append(int(line))
                        arrived.notify()

        reader = threading.Thread(target=read, daemon=True)
        reader.start()

        def first_after(moment: int, count: int = 1) -> int:
            """Wait for ``count`` acknowledgements after ``moment``; return when the first came."""
            with arrived:
                if not arrived.wait_for(
                    lambda: sum(each > moment for each in times[-1000:]) >= count,
                    _PEER_SECONDS_MAX,
                ):
                    raise TimeoutError("no acknowledgement after the kill")
                return next(each for each in times if each > moment)

        try:
            for _ in range(rounds):
                first_after(time.time_ns(), _ACKNOWLEDGED_BEFORE)
                leader = peer.leader()
                killed_at = time.time_ns()
                peer.kill(leader)
                results.append((first_after(time.time_ns()) - killed_at) / 1e6)
                peer.restart(leader)
        finally:
            process.kill()
            reader.join()
    return results

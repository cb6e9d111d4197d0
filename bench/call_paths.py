"""Count the functions of Quorate that one write and one Fetch call, by node and by file.

Three real nodes run in one process, each on its own thread. Calls of Quorate's functions and
resumptions of its coroutines are counted per node. Writes are sequential, so one write includes
everything its leader does until the next, including the Fetches of both followers.

    python -m bench.call_paths --writes 200 --functions 40
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType

from bench.closed_loop import config_change, create_topics
from quorate.client.client import Client
from quorate.config.sections import ListenerConfig, MetricsConfig, NodeConfig
from quorate.config.server_config import ServerConfig
from quorate.demo.ports import LOOPBACK, free_ports
from quorate.formatting import FormatPlan, format_directory
from quorate.server.node import ServerNode
from quorum.log.filesystem import OsFileSystem
from quorum.types import Endpoint, ReplicaKey, Voter

_ROOT = Path(__file__).parent.parent
_OURS = tuple(f"{_ROOT / name}/" for name in ("quorum", "quorate", "statemachine", "metrics"))
_FETCH = "pack_fetch_request"


class Trio:
    """Three nodes, each with a thread and with the counters of all its threads."""

    def __init__(self, folder: Path) -> None:
        ports = free_ports(3)
        self.addresses = [f"{LOOPBACK}:{port}" for port in ports]
        self.counters: list[list[Counter[CodeType]]] = []
        self.nodes: list[ServerNode] = []
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        voters = tuple(
            Voter(ReplicaKey(n, bytes([128 + n]) * 16), (Endpoint("CONTROLLER", LOOPBACK, port),))
            for n, port in enumerate(ports, 1)
        )
        threading.setprofile(self._begin)
        for voter, address in zip(voters, self.addresses, strict=True):
            node_id, data_dir = voter.key.id, folder / str(voter.key.id)
            plan = FormatPlan(data_dir, "call-paths", node_id, voter.key.directory_id, voters)
            format_directory(OsFileSystem(), plan)
            config = ServerConfig(
                node=NodeConfig(id=node_id, data_dir=data_dir),
                listeners=ListenerConfig(client=address),
                metrics=MetricsConfig(listen=""),
            )
            self.counters.append([])
            thread = threading.Thread(target=lambda: asyncio.run(self._live(config)))  # noqa: B023
            self._threads.append(thread)
            thread.start()
            while len(self.nodes) < node_id:
                time.sleep(0.01)
        threading.setprofile(None)

    def _begin(self, _frame: FrameType, _event: str, _: object) -> None:
        """Handle the first event of a thread, which belongs to the node that starts now."""
        counter: Counter[CodeType] = Counter()
        self.counters[-1].append(counter)

        def count(frame: FrameType, event: str, _: object) -> None:
            if event == "call" and frame.f_code.co_filename.startswith(_OURS):
                counter[frame.f_code] += 1

        sys.setprofile(count)

    async def _live(self, config: ServerConfig) -> None:
        node = ServerNode(config, OsFileSystem(), rng=random.Random(1), on_failure=print)
        await node.start()
        self.nodes.append(node)
        await asyncio.to_thread(self._stop.wait)
        await node.stop()

    def leader(self) -> int:
        """Return the index of the node that accepts writes; waits for one."""
        while True:
            for place, node in enumerate(self.nodes):
                if node.replica.node.can_write:
                    return place
            time.sleep(0.05)

    def entered(self) -> list[Counter[CodeType]]:
        """Return the calls counted so far, per node."""
        return [sum((each.copy() for each in node), Counter()) for node in self.counters]

    def stop(self) -> None:
        """Stop all nodes and wait for their threads."""
        self._stop.set()
        for thread in self._threads:
            thread.join()


async def _write(trio: Trio, writes: int) -> list[Counter[CodeType]]:
    """Return the calls per node for this number of writes."""
    async with Client(trio.addresses) as client:
        await create_topics(client)
        await client.write(config_change(0))
        before = trio.entered()
        for number in range(writes):
            await client.write(config_change(number + 1))
        return [after - old for old, after in zip(before, trio.entered(), strict=True)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Count function calls per write and Fetch")
    parser.add_argument("--writes", type=int, default=200)
    parser.add_argument("--functions", type=int, default=0, help="functions to list per row")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trio = Trio(Path(folder))
        leader = trio.leader()
        found = asyncio.run(_write(trio, options.writes))
        trio.stop()
    follower = found[(leader + 1) % 3]
    fetches = sum(count for code, count in follower.items() if code.co_name == _FETCH)
    print(f"{'':24} {'calls':>8} {'functions':>10} {'files':>6}")
    rows = (
        ("write, leader", found[leader], options.writes),
        ("Fetch, follower", follower, fetches),
    )
    for name, calls, times in rows:
        usual = [code for code, count in calls.items() if count * 2 >= times]
        files = len({code.co_filename for code in usual})
        print(f"{name:24} {calls.total() / times:8.1f} {len(usual):10} {files:6}")
        for code, count in calls.most_common(options.functions):
            where = code.co_filename.removeprefix(f"{_ROOT}/")
            print(f"{count / times:8.2f} {where}:{code.co_qualname}")


if __name__ == "__main__":
    main()

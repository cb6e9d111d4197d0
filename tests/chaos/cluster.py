"""A cluster of processes in which every connection goes through proxies."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from quorate.demo.local_cluster import HOST, LocalNode
from quorate.demo.ports import free_ports
from tests.chaos.disk import NAME
from tests.chaos.node import PROXY
from tests.chaos.proxy import CLIENT, Links, Proxy
from tests.integration.processes import Processes

PEER_TCP = "listeners.peer_tcp"
SETTINGS: dict[str, object] = {
    "log.segment_bytes": 1 << 20,
    "snapshot.max_bytes_between": 4 << 20,
    "snapshot.min_changed_records_ratio": 0.2,
    "quorum.observer_session_ms": 10_000,
    "node.filesystem": NAME,
}
"""Small enough that segments, checkpoints and trims occur within minutes, also in short terms."""


class ChaosCluster(Processes):
    """Nodes that reach one another through proxies.

    ``session`` identifies one process run of a node, for the check of local reads.
    """

    program = "tests.chaos.node"
    loads_anew = True

    def __init__(
        self,
        folder: Path,
        *,
        voters: int = 3,
        settings: Mapping[str, object] | None = None,
        has_peer_tcp: bool = False,
    ) -> None:
        """``has_peer_tcp``: the peers' streams are TCP's, unless a fault makes them fall back."""
        super().__init__(
            folder, voters=voters, settings={**SETTINGS, **(settings or {})}, cluster_id="chaos"
        )
        self.links = Links()
        self._process_runs: dict[int, int] = dict.fromkeys(self.nodes, 0)
        self._log_sizes: dict[int, int] = dict.fromkeys(self.nodes, 0)
        self._is_certain: dict[int, bool] = dict.fromkeys(self.nodes, False)
        targets = {node.port: node.id for node in self.nodes.values()}
        if has_peer_tcp:
            for node, port in zip(self.nodes.values(), free_ports(voters)):
                node.settings[PEER_TCP] = f"{HOST}:{port}"
                targets[port] = node.id
        self._proxies = {
            source: Proxy(self.links, source, HOST, port, targets)
            for source, port in zip((CLIENT, *self.nodes), free_ports(len(self.nodes) + 1))
        }

    async def open_proxies(self) -> None:
        """Start the proxies. They also carry the connections of every client in this process."""
        for proxy in self._proxies.values():
            await proxy.start()
        os.environ[PROXY] = self._proxies[CLIENT].url

    async def close_proxies(self) -> None:
        os.environ.pop(PROXY, None)
        for proxy in self._proxies.values():
            await proxy.close()

    def carried_between_nodes(self) -> tuple[int, int]:
        """Return the bytes of connections between nodes at their ports of gRPC, and of TCP."""
        by_port: Counter[int] = Counter()
        for source, proxy in self._proxies.items():
            if source != CLIENT:
                by_port.update(proxy.carried)
        grpc = sum(by_port.pop(node.port, 0) for node in self.nodes.values())
        return grpc, by_port.total()

    def start(self, node: LocalNode) -> None:
        self.environment[PROXY] = self._proxies[node.id].url
        super().start(node)
        self._process_runs[node.id] += 1
        self._log_sizes[node.id] = node.log_path.stat().st_size
        self._is_certain[node.id] = True

    def incarnation_ends(self, node: LocalNode) -> None:
        """Call before a node may die: later answers cannot be assigned to a session."""
        self._is_certain[node.id] = False

    def has_served(self, node: LocalNode) -> bool:
        """Return whether the current or last process run has opened its ports."""
        with node.log_path.open("rb") as file:
            file.seek(self._log_sizes[node.id])
            return b"event=serving" in file.read()

    def session(self, node_id: int) -> str:
        """Return the node's current session; empty while the node may be ending."""
        return f"n{node_id}.{self._process_runs[node_id]}" if self._is_certain.get(node_id) else ""

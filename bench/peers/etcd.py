"""etcd: three members on loopback with default settings, loaded by ``programs/etcdload``."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Sequence
from typing import ClassVar

from bench.peers import go_load
from bench.peers.installed import has_programs, program
from bench.peers.load_program import Kind, Load, Place
from bench.peers.peer import Peer
from quorate.demo.local_cluster import HOST
from quorate.demo.ports import free_ports

_STATUS_SECONDS_MAX = 2.0
_NO_LEADER = "0"


class Etcd(Peer):
    """One cluster."""

    name = "etcd"
    loads: ClassVar = {
        (Kind.WRITE, Place.LEADER): "write",
        (Kind.LINEARIZABLE, Place.LEADER): "linearizable",
        (Kind.LINEARIZABLE, Place.FOLLOWER): "linearizable",
        (Kind.LOCAL, Place.LEADER): "local",
        (Kind.WATCH, Place.LEADER): "watch",
    }

    @staticmethod
    def is_installed() -> bool:
        """Return whether etcd and its load program were built."""
        return has_programs("etcd", "etcdload")

    def prepare(self) -> None:
        """Choose ports."""
        ports = free_ports(6)
        self._clients = [f"http://{HOST}:{port}" for port in ports[:3]]
        self._peers = [f"http://{HOST}:{port}" for port in ports[3:]]

    def start(self, number: int, *, is_first: bool) -> None:
        """Start one member."""
        members = ",".join(f"n{each}={url}" for each, url in enumerate(self._peers))
        self.processes.start(
            number,
            [
                str(program("etcd")), "--name", f"n{number}",
                "--data-dir", str(self.folder / f"n{number}"),
                "--listen-client-urls", self._clients[number],
                "--advertise-client-urls", self._clients[number],
                "--listen-peer-urls", self._peers[number],
                "--initial-advertise-peer-urls", self._peers[number],
                "--initial-cluster", members,
                "--initial-cluster-state", "new" if is_first else "existing",
                "--log-level", "error",
            ],
        )  # fmt: skip

    def find_leader(self) -> int | None:
        """Ask every member for its own id and the leader's."""
        members, leaders = [], set()
        for url in self._clients:
            request = urllib.request.Request(
                f"{url}/v3/maintenance/status", b"{}", {"content-type": "application/json"}
            )
            with urllib.request.urlopen(request, timeout=_STATUS_SECONDS_MAX) as response:
                status = json.load(response)
            members.append(status["header"]["member_id"])
            leaders.add(status.get("leader", _NO_LEADER))
        leader = leaders.pop()
        return None if leaders or leader not in members else members.index(leader)

    def load_command(self, load: Load, mode: str, number: int) -> Sequence[str]:
        """Puts, gets or watches of 64 keys."""
        return go_load.load_command("etcdload", load, mode, self._clients[number])

    def failover_command(self) -> Sequence[str]:
        """Put again and again."""
        return go_load.failover_command("etcdload", self._clients)

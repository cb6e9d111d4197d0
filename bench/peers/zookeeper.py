"""ZooKeeper: three servers on loopback that sync every write, loaded by ``ZooKeeperLoad``."""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from typing import ClassVar

from bench.peers.installed import class_path, has_java
from bench.peers.load_program import Kind, Load, Place
from bench.peers.peer import Peer
from quorate.demo.local_cluster import HOST
from quorate.demo.ports import free_ports

_ANSWER_SECONDS_MAX = 2.0
_CONFIG = """\
tickTime=2000
initLimit=10
syncLimit=5
dataDir={data}
clientPort={port}
clientPortAddress={host}
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=*
forceSync=yes
"""


class ZooKeeper(Peer):
    """One ensemble."""

    name = "zookeeper"
    loads: ClassVar = {
        (Kind.WRITE, Place.LEADER): "write",
        (Kind.LINEARIZABLE, Place.LEADER): "linearizable",
        (Kind.LINEARIZABLE, Place.FOLLOWER): "linearizable",
        (Kind.LOCAL, Place.LEADER): "local",
        (Kind.WATCH, Place.LEADER): "watch",
    }

    @staticmethod
    def is_installed() -> bool:
        """Return whether its jars and its load program are there."""
        return has_java("zookeeper")

    def prepare(self) -> None:
        """Write the configuration of three servers."""
        ports = free_ports(9)
        self._addresses = [f"{HOST}:{port}" for port in ports[:3]]
        servers = "".join(
            f"server.{number + 1}={HOST}:{ports[3 + number]}:{ports[6 + number]}\n"
            for number in range(3)
        )
        for number in range(3):
            data = self.folder / f"n{number}"
            data.mkdir()
            (data / "myid").write_text(f"{number + 1}\n")
            config = _CONFIG.format(data=data, port=ports[number], host=HOST)
            (self.folder / f"{number}.cfg").write_text(config + servers)

    def start(self, number: int, *, is_first: bool) -> None:
        """Start one server."""
        del is_first  # a server finds its data by itself
        self.processes.start(
            number,
            [
                "java", "-Xmx512m", "-cp", class_path("zookeeper"),
                "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                str(self.folder / f"{number}.cfg"),
            ],
        )  # fmt: skip

    def find_leader(self) -> int | None:
        """Ask every server for its mode."""
        modes = [_mode(address) for address in self._addresses]
        if "leader" in modes and modes.count("follower") == 2:
            return modes.index("leader")
        return None

    def load_command(self, load: Load, mode: str, number: int) -> Sequence[str]:
        """Sets, gets or watches of 64 nodes."""
        return [
            *_java_load(), mode, self._addresses[number], str(load.clients),
            str(load.warm_up_seconds), str(load.seconds),
        ]  # fmt: skip

    def failover_command(self) -> Sequence[str]:
        """Set again and again."""
        return [*_java_load(), "failover", ",".join(self._addresses)]


def _java_load() -> list[str]:
    return ["java", "-cp", class_path("zookeeper"), "ZooKeeperLoad"]


def _mode(address: str) -> str:
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), _ANSWER_SECONDS_MAX) as connection:
        connection.sendall(b"srvr")
        text = b""
        while piece := connection.recv(4096):
            text += piece
    found = re.search(rb"^Mode: (\w+)", text, re.MULTILINE)
    return found[1].decode() if found else ""

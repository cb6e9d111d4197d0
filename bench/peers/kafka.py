"""Kafka: three KRaft controllers on loopback that commit at once, loaded by ``KafkaLoad``."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Sequence
from typing import ClassVar

from bench.peers.installed import class_path, has_java
from bench.peers.load_program import Kind, Load, Place
from bench.peers.peer import Peer
from bench.peers.processes import PeerError
from quorate.demo.local_cluster import HOST
from quorate.demo.ports import free_ports

_CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
_BROKER = 3
_CONNECT_SECONDS_MAX = 1.0
_PREPARE_SECONDS_MAX = 120.0
_CONTROLLER = "process.roles=controller\nlisteners=CONTROLLER://{at}\n"
_BROKER_ROLE = (
    "process.roles=broker\nlisteners=PLAINTEXT://{at}\nadvertised.listeners=PLAINTEXT://{at}\n"
)
_CONFIG = """\
node.id={node}
log.dirs={data}
controller.quorum.voters={voters}
controller.listener.names=CONTROLLER
controller.quorum.append.linger.ms=0
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""
_LOGGING = """\
rootLogger.level=WARN
rootLogger.appenderRef.console.ref=console
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%d %p %c %m%n
"""


class Kafka(Peer):
    """Three controllers. A broker runs at the start only, because topics need one."""

    name = "kafka"
    loads: ClassVar = {(Kind.WRITE, Place.LEADER): "write"}

    @staticmethod
    def is_installed() -> bool:
        """Return whether its jars and its load program are there."""
        return has_java("kafka")

    def prepare(self) -> None:
        """Write and format the directories of three controllers and a broker, create topics."""
        addresses = [f"{HOST}:{port}" for port in free_ports(4)]
        self._addresses = addresses[:3]
        (self.folder / "log4j2.properties").write_text(_LOGGING)
        voters = ",".join(f"{number + 1}@{each}" for number, each in enumerate(self._addresses))
        for number, address in enumerate(addresses):
            role = _BROKER_ROLE if number == _BROKER else _CONTROLLER
            config = self.folder / f"{number}.properties"
            text = _CONFIG.format(node=number + 1, data=self.folder / f"n{number}", voters=voters)
            config.write_text(role.format(at=address) + text)
            self._run("kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", str(config))
        for number in (0, 1, 2, _BROKER):
            self.start(number, is_first=True)
        self.leader()
        # The broker's port opens when it is registered; the client waits for it.
        self._run("KafkaLoad", "prepare", addresses[_BROKER])
        self.processes.stop()

    def start(self, number: int, *, is_first: bool) -> None:
        """Start one controller."""
        del is_first
        command = self._java("1g", "kafka.Kafka", str(self.folder / f"{number}.properties"))
        self.processes.start(number, command)

    def find_leader(self) -> int | None:
        """Read the election state that every controller keeps in its folder."""
        newest = (-1, -1)
        for number, address in enumerate(self._addresses):
            path = self.folder / f"n{number}" / "__cluster_metadata-0" / "quorum-state"
            state = json.loads(path.read_text())
            newest = max(newest, (state["leaderEpoch"], state["leaderId"]))
            host, _, port = address.rpartition(":")
            socket.create_connection((host, int(port)), _CONNECT_SECONDS_MAX).close()
        return newest[1] - 1 if newest[1] > 0 else None

    def load_command(self, load: Load, mode: str, number: int) -> Sequence[str]:
        """Changes of 64 topics' configurations; the client finds the leader."""
        del number
        return self._java(
            "512m", "KafkaLoad", mode, ",".join(self._addresses), str(load.clients),
            str(load.warm_up_seconds), str(load.seconds),
        )  # fmt: skip

    def failover_command(self) -> Sequence[str]:
        """Change again and again."""
        return self._java("512m", "KafkaLoad", "failover", ",".join(self._addresses))

    def _java(self, heap: str, *arguments: str) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={self.folder}/log4j2.properties"
        return [
            "java", f"-Xmx{heap}", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20",
            "-XX:InitiatingHeapOccupancyPercent=35", logging, "-cp", class_path("kafka"),
            *arguments,
        ]  # fmt: skip

    def _run(self, *arguments: str) -> None:
        done = subprocess.run(
            self._java("256m", *arguments),
            capture_output=True,
            check=False,
            text=True,
            timeout=_PREPARE_SECONDS_MAX,
        )
        if done.returncode != 0:
            raise PeerError(f"{arguments[0]} failed: {done.stdout[-1000:]}{done.stderr[-1000:]}")

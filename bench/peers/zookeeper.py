"""ZooKeeper: three servers on loopback that sync every write, loaded by ``ZooKeeperLoad``."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from bench.peers.processes import PeerError, Processes
from quorate.demo.local_cluster import HOST
from quorate.demo.ports import free_ports

_SOURCE = Path(__file__).parent / "ZooKeeperLoad.java"
_JARS = Path("/usr/share/java")
_PATTERNS = (
    "zookeeper*", "netty-*", "log4j*", "dropwizard-metrics-core*", "metrics-core*", "snappy*",
    "jackson-*", "commons-*", "slf4j*", "logback*",
)  # fmt: skip
_READY_SECONDS_MAX = 30.0
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
_LOGGING = """\
log4j.rootLogger=ERROR, console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
"""


class ZooKeeper:
    """One ensemble; ``close`` stops it."""

    name = "zookeeper"

    def __init__(self, folder: Path) -> None:
        """Compile the load program and start three servers.

        Raises:
            PeerError: The program cannot be compiled, or no leader was elected.
        """
        self._folder = folder
        self._processes = Processes(folder)
        jars = sorted(str(jar) for pattern in _PATTERNS for jar in _JARS.glob(pattern + ".jar"))
        self._class_path = ":".join([*jars, str(folder)])
        (folder / "log4j.properties").write_text(_LOGGING)
        self._compile()
        ports = free_ports(9)
        self._ports = ports[:3]
        servers = "".join(
            f"server.{number + 1}={HOST}:{ports[3 + number]}:{ports[6 + number]}\n"
            for number in range(3)
        )
        for number in range(3):
            data = folder / f"n{number}"
            data.mkdir()
            (data / "myid").write_text(f"{number + 1}\n")
            config = _CONFIG.format(data=data, port=self._ports[number], host=HOST)
            (folder / f"{number}.cfg").write_text(config + servers)
            self._start(number)
        self.leader()

    @staticmethod
    def is_installed() -> bool:
        """Return whether its jars and Java are installed."""
        has_java = all(shutil.which(program) for program in ("java", "javac"))
        return has_java and (_JARS / "zookeeper.jar").exists()

    def _compile(self) -> None:
        command = ["javac", "-cp", self._class_path, "-d", str(self._folder), str(_SOURCE)]
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode != 0:
            raise PeerError(f"{_SOURCE.name} cannot be compiled: {done.stderr.decode()}")

    def _start(self, number: int) -> None:
        self._processes.start(
            number,
            [
                "java", "-Xmx512m", "-cp", self._class_path,
                "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                str(self._folder / f"{number}.cfg"),
            ],
        )  # fmt: skip

    def leader(self) -> int:
        """Return the number of the leader, once all three servers serve.

        Raises:
            PeerError: No leader within the time limit.
        """
        deadline = time.monotonic() + _READY_SECONDS_MAX
        while time.monotonic() < deadline:
            modes = [_mode(port) for port in self._ports]
            if "leader" in modes and modes.count("follower") == 2:
                return modes.index("leader")
            time.sleep(0.1)
        raise PeerError("ZooKeeper has no leader")

    def load(self, writers: int, *, seconds: float, warm_up_seconds: float) -> dict[str, float]:
        """Run closed-loop sets against the leader."""
        address = f"{HOST}:{self._ports[self.leader()]}"
        done = subprocess.run(
            [*self._java(), "load", address, str(writers), str(warm_up_seconds), str(seconds)],
            capture_output=True,
            check=False,
        )
        if done.returncode != 0:
            raise PeerError(done.stderr.decode())
        result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return result

    def failover_command(self) -> Sequence[str]:
        """Return a command that writes until killed and prints when each write was acknowledged."""
        addresses = ",".join(f"{HOST}:{port}" for port in self._ports)
        return [*self._java(), "failover", addresses]

    def _java(self) -> list[str]:
        return ["java", "-cp", self._class_path, "ZooKeeperLoad"]

    def kill(self, number: int) -> None:
        """Send SIGKILL to one server and wait until it has ended."""
        self._processes.kill(number)

    def restart(self, number: int) -> None:
        """Restart a killed server and wait until all three are up."""
        self._start(number)
        self.leader()

    def close(self) -> None:
        """Stop the servers."""
        self._processes.stop()


def _mode(port: int) -> str:
    """Return the mode that a server reports; empty without a response."""
    try:
        with socket.create_connection((HOST, port), timeout=2) as connection:
            connection.sendall(b"srvr")
            text = b""
            while piece := connection.recv(4096):
                text += piece
    except OSError:
        return ""
    for line in text.decode().splitlines():
        if line.startswith("Mode: "):
            return line.removeprefix("Mode: ")
    return ""

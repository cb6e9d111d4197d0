"""etcd: three members on loopback with default settings, loaded by ``etcd_load`` (Go)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.peers.processes import PeerError, Processes
from quorate.demo.local_cluster import HOST
from quorate.demo.ports import free_ports

_SOURCES = Path(__file__).parent / "etcd_load"
_READY_SECONDS_MAX = 30.0
_BUILD_SECONDS_MAX = 300.0


class Etcd:
    """One cluster; ``close`` stops it."""

    name = "etcd"

    def __init__(self, folder: Path) -> None:
        """Build the load program and start three members.

        Raises:
            PeerError: The program cannot be built, or no leader was elected.
        """
        self._folder = folder
        self._processes = Processes(folder)
        self._program = _build(folder)
        ports = free_ports(6)
        self._clients = [f"http://{HOST}:{port}" for port in ports[:3]]
        self._peers = [f"http://{HOST}:{port}" for port in ports[3:]]
        for number in range(3):
            self._start(number, state="new")
        self.leader()

    @staticmethod
    def is_installed() -> bool:
        """Return whether etcd and the Go compiler for its load program are installed."""
        return all(shutil.which(program) for program in ("etcd", "etcdctl", "go"))

    def _start(self, number: int, *, state: str) -> None:
        members = ",".join(f"n{each}={url}" for each, url in enumerate(self._peers))
        self._processes.start(
            number,
            [
                "etcd", "--name", f"n{number}", "--data-dir", str(self._folder / f"n{number}"),
                "--listen-client-urls", self._clients[number],
                "--advertise-client-urls", self._clients[number],
                "--listen-peer-urls", self._peers[number],
                "--initial-advertise-peer-urls", self._peers[number],
                "--initial-cluster", members, "--initial-cluster-state", state,
                "--log-level", "error",
            ],
        )  # fmt: skip

    def leader(self) -> int:
        """Return the number of the leader, once all three members agree.

        Raises:
            PeerError: No leader within the time limit.
        """
        deadline = time.monotonic() + _READY_SECONDS_MAX
        command = ["etcdctl", "--endpoints", ",".join(self._clients), "endpoint", "status",
                   "-w", "json"]  # fmt: skip
        while time.monotonic() < deadline:
            done = subprocess.run(
                command,
                capture_output=True,
                check=False,
                env={**os.environ, "ETCDCTL_API": "3"},
            )
            found: list[dict[str, Any]] = json.loads(done.stdout) if done.stdout.strip() else []
            for each in found:
                status = each["Status"]
                if len(found) == 3 and status["header"]["member_id"] == status.get("leader"):
                    return self._clients.index(each["Endpoint"])
            time.sleep(0.1)
        raise PeerError("etcd has no leader")

    def load(self, writers: int, *, seconds: float, warm_up_seconds: float) -> dict[str, float]:
        """Run closed-loop puts against the leader."""
        done = subprocess.run(
            [
                str(self._program), "-endpoints", self._clients[self.leader()],
                "-writers", str(writers), "-measured", f"{seconds}s",
                "-warm-up", f"{warm_up_seconds}s",
            ],
            capture_output=True,
            check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise PeerError(done.stderr.decode())
        result: dict[str, float] = json.loads(done.stdout)
        return result

    def failover_command(self) -> Sequence[str]:
        """Return a command that writes until killed and prints when each write was acknowledged."""
        return [str(self._program), "-mode", "failover", "-endpoints", ",".join(self._clients)]

    def kill(self, number: int) -> None:
        """Send SIGKILL to one member and wait until it has ended."""
        self._processes.kill(number)

    def restart(self, number: int) -> None:
        """Restart a killed member and wait until all three are up."""
        self._start(number, state="existing")
        self.leader()

    def close(self) -> None:
        """Stop the members."""
        self._processes.stop()


def _build(folder: Path) -> Path:
    program = folder / "etcd-load"
    done = subprocess.run(
        ["go", "build", "-o", str(program), "."],
        cwd=_SOURCES,
        capture_output=True,
        timeout=_BUILD_SECONDS_MAX,
        check=False,
    )
    if done.returncode != 0:
        raise PeerError(f"etcd's load program cannot be built: {done.stderr.decode()}")
    return program

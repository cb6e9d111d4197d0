"""A quorum of real server processes on this machine, each with a folder and free ports.

It uses only what a user would use: configuration files, ``quorate format`` and
``quorate server``. The caller that starts a cluster stops it; ``stop_all`` is safe to call twice
and leaves nothing running.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from quorate.demo.ports import LOOPBACK, free_ports
from quorate.demo.security import ClusterSecurity
from quorum.errors import QuorateError
from quorum.types import draw_directory_id, uuid_to_text

HOST = LOOPBACK
PID_NAME = "server.pid"
"""In a node's folder: the process id of the server started last."""
_POLL_SECONDS = 0.02
STOP_SECONDS_MAX = 60.0
START_SECONDS_MAX = 120.0
"""Time limit of a start on a loaded machine; a node that ended is noticed at once."""


class ClusterError(QuorateError):
    """A node did not do what it was asked to; the message says where its log is."""


@dataclass(slots=True)
class LocalNode:
    """One node: its folder and addresses and, while it runs, its process."""

    id: int
    folder: Path
    directory_id: str
    port: int
    metrics_port: int
    is_voter: bool
    process: subprocess.Popen[bytes] | None = None
    settings: dict[str, object] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """``host:port`` for clients and peers."""
        return f"{HOST}:{self.port}"

    @property
    def user_address(self) -> str:
        """``host:port`` for callers that prove a password; that for clients if it has no other."""
        return str(self.settings.get("listeners.sasl", self.address))

    @property
    def metrics_address(self) -> str:
        """``host:port`` for scrapers."""
        return f"{HOST}:{self.metrics_port}"

    @property
    def data_dir(self) -> Path:
        """The directory that ``quorate format`` made."""
        return self.folder / "data"

    @property
    def config_path(self) -> Path:
        """The TOML file the server is started with."""
        return self.folder / "quorate.toml"

    @property
    def log_path(self) -> Path:
        """Standard output and error of the server."""
        return self.folder / "server.log"

    @property
    def is_running(self) -> bool:
        """Whether its process is alive."""
        return self.process is not None and self.process.poll() is None

    def log_tail(self, lines: int = 20) -> str:
        """The last lines the server wrote."""
        try:
            text = self.log_path.read_text(errors="replace")
        except FileNotFoundError:
            return "(nothing was written)"
        return "\n".join(text.splitlines()[-lines:])


class LocalCluster:
    """Voters 1..n and any number of observers, started and stopped one by one.

    Args:
        folder: Everything is kept below it.
        settings: ``section.key`` to value, for every node's configuration file.
        security: Makes it a cluster in mode bound, and ``command`` its operator; None: insecure.
    """

    program = "quorate"
    """The module that a node runs; a test may put its own between the node and the network."""

    def __init__(
        self,
        folder: Path,
        *,
        voters: int = 3,
        settings: Mapping[str, object] | None = None,
        cluster_id: str = "quorate-local",
        environment: Mapping[str, str] | None = None,
        security: ClusterSecurity | None = None,
    ) -> None:
        self.folder = folder
        self.cluster_id = cluster_id
        self.settings = dict(settings or {})
        self.security = security
        self.environment = {**os.environ, "GRPC_VERBOSITY": "NONE", **(environment or {})}
        self.is_starting = False
        """Whether a process is being started that ``stop_all`` does not know yet."""
        self.nodes: dict[int, LocalNode] = {}
        for node_id in range(1, voters + 1):
            self._add(node_id, is_voter=True)
        self.initial_voters = ",".join(
            f"{node.id}@{node.address}:{node.directory_id}" for node in self.nodes.values()
        )

    def _add(self, node_id: int, *, is_voter: bool) -> LocalNode:
        port, metrics_port = free_ports(2)
        node = LocalNode(
            id=node_id,
            folder=self.folder / f"node-{node_id}",
            directory_id=uuid_to_text(draw_directory_id(os.urandom)),
            port=port,
            metrics_port=metrics_port,
            is_voter=is_voter,
        )
        if self.security is not None:
            node.settings |= self.security.settings(node_id, is_voter=is_voter)
        self.nodes[node_id] = node
        return node

    @property
    def addresses(self) -> list[str]:
        """Client addresses of all voters."""
        return [node.address for node in self.nodes.values() if node.is_voter]

    @property
    def user_addresses(self) -> list[str]:
        """Addresses of all voters for callers that prove a password, if they have such."""
        return [node.user_address for node in self.nodes.values() if node.is_voter]

    # ------------------------------------------------------------------ start and stop of a node

    def add_observer(self, node_id: int) -> LocalNode:
        """Add a node that joins as an observer. It is neither formatted nor started."""
        return self._add(node_id, is_voter=False)

    def format(self, node: LocalNode) -> str:
        """Write the node's configuration and format its directory; returns what it printed.

        A secured node without a certificate gets one first.
        """
        if self.security is not None:
            self.security.issue(self.command, node.id, is_voter=node.is_voter)
        self.configure(node)
        voters = (
            ["--initial-voters", self.initial_voters] if node.is_voter else ["--no-initial-voters"]
        )
        if node.is_voter and "," not in self.initial_voters:
            # Its folder is deleted as a whole.
            voters.append("--unsafe-lone-directory-id")
        return self.command("format", "--config", str(node.config_path),
                            "--cluster-id", self.cluster_id, *voters)  # fmt: skip

    def configure(self, node: LocalNode) -> None:
        """Write the node's configuration file; it takes effect at its next start."""
        node.folder.mkdir(parents=True, exist_ok=True)
        node.config_path.write_text(self._toml(node))

    def start(self, node: LocalNode) -> None:
        """Start the server process; it is not necessarily ready yet."""
        with node.log_path.open("ab") as log:
            self.is_starting = True
            try:
                node.process = subprocess.Popen(
                    [sys.executable, "-m", self.program, "server", "--config", node.config_path],
                    stdout=log,
                    stderr=log,
                    stdin=subprocess.DEVNULL,
                    env=self.environment,
                    start_new_session=True,
                )
            finally:
                self.is_starting = False
        (node.folder / PID_NAME).write_text(f"{node.process.pid}\n")

    def kill(self, node: LocalNode) -> None:
        """SIGKILL, and wait until the process is gone."""
        self._signal(node, signal.SIGKILL)

    def stop(self, node: LocalNode) -> int:
        """SIGTERM, and wait; returns the exit code."""
        return self._signal(node, signal.SIGTERM)

    def stop_all(self) -> None:
        """Stop every node, by force if it takes too long."""
        for node in self.nodes.values():
            if node.is_running and node.process is not None:
                node.process.send_signal(signal.SIGTERM)
        for node in self.nodes.values():
            if node.process is None:
                continue
            try:
                node.process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                node.process.kill()
                node.process.wait()

    def _signal(self, node: LocalNode, number: int) -> int:
        process = node.process
        if process is None:
            raise ClusterError(f"node {node.id} was never started")
        if process.poll() is None:
            process.send_signal(number)
        try:
            return process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired as error:
            process.kill()
            process.wait()
            raise ClusterError(
                f"node {node.id} did not stop within {STOP_SECONDS_MAX:g} s; log: {node.log_path}"
            ) from error

    # ------------------------------------------------------------------ looking at it

    def command(self, *arguments: str, is_operator: bool = True) -> str:
        """Run ``quorate ARGUMENTS`` and return its standard output.

        In a secured cluster it shows the operator's certificate, unless ``is_operator`` is false.

        Raises:
            ClusterError: It failed; with what it wrote to standard error.
        """
        shown = self.security.operator_environment if self.security and is_operator else {}
        done = subprocess.run(
            [sys.executable, "-m", "quorate", *arguments],
            capture_output=True,
            text=True,
            env={**self.environment, **shown},
            check=False,
        )
        if done.returncode != 0:
            raise ClusterError(
                f"quorate {' '.join(arguments)} failed with {done.returncode}: "
                f"{done.stderr.strip()}"
            )
        return done.stdout

    def wait_ready(self, nodes: Sequence[LocalNode], seconds: float = START_SECONDS_MAX) -> None:
        """Return once every node answers ``/readyz`` with ready.

        Raises:
            ClusterError: A process ended, or the time is over; with the end of its log.
        """
        deadline = time.monotonic() + seconds
        for node in nodes:
            while not self.is_ready(node):
                if not node.is_running:
                    raise ClusterError(f"node {node.id} ended:\n{node.log_tail()}")
                if time.monotonic() > deadline:
                    raise ClusterError(
                        f"node {node.id} not ready after {seconds:g} s: {self.readiness(node)}\n"
                        f"{node.log_tail()}"
                    )
                time.sleep(_POLL_SECONDS)

    def is_ready(self, node: LocalNode) -> bool:
        """Whether the node is ready for clients."""
        return self._get(node, "/readyz")[0] == 200

    def readiness(self, node: LocalNode) -> str:
        """Return the answer of ``/readyz``."""
        return self._get(node, "/readyz")[1]

    def metrics(self, node: LocalNode) -> str:
        """The node's ``/metrics`` page."""
        return self._get(node, "/metrics")[1]

    def metric(self, node: LocalNode, series: str) -> float | None:
        """One series by name and labels as printed; None when it is absent."""
        for line in self.metrics(node).splitlines():
            name, _, value = line.rpartition(" ")
            if name == series:
                return float(value)
        return None

    def _get(self, node: LocalNode, path: str) -> tuple[int, str]:
        request = urllib.request.Request(f"http://{node.metrics_address}{path}")
        context = None
        if self.security is not None:
            request = self.security.scrape(f"{node.metrics_address}{path}")
            context = self.security.metrics_context
        try:
            with urllib.request.urlopen(request, timeout=5, context=context) as answer:  # noqa: S310
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def _toml(self, node: LocalNode) -> str:
        values: dict[str, object] = {
            "node.id": node.id,
            "node.data_dir": str(node.data_dir),
            "listeners.client": node.address,
            "metrics.listen": f"{HOST}:{node.metrics_port}",
            "bootstrap.servers": self.addresses,
            **self.settings,
            **node.settings,
        }
        sections: dict[str, list[str]] = {}
        for key, value in values.items():
            section, _, name = key.partition(".")
            sections.setdefault(section, []).append(f"{name} = {json.dumps(value)}")
        return "\n".join(
            f"[{name}]\n" + "\n".join(lines) + "\n" for name, lines in sections.items()
        )

"""A ``LocalCluster`` for tests that break things: nothing outlives the test, whatever happens.

Adds to the demo's harness what a test needs and a demo does not: signals that freeze a process,
several kills in one instant, servers that must fail to start, and a failure report with the
ends of all logs.
"""

from __future__ import annotations

import contextlib
import json
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from quorate.demo.local_cluster import ClusterError, LocalCluster, LocalNode
from tests.support import fork_server

Found = TypeVar("Found")
ROOT = Path(__file__).resolve().parents[2]
POLL_SECONDS = 0.02
COMMAND_SECONDS_MAX = 180.0
PATIENCE_SECONDS = 90.0
"""How long to wait for what must come; a loaded machine takes ten times what a quiet one does."""
LOG_LINES_SHOWN = 60
SETTINGS: dict[str, object] = {"limits.disk_free_bytes_min": 0}
"""The test machine may be nearly full; a test that depends on space sets its own limit."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command or a server ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.status == 0, self.err
        return json.loads(self.out)


class Processes(LocalCluster):
    """Voters 1..n as processes. Make it with ``running``, which also ends it.

    Where there is a fork server, it starts them.
    """

    loads_anew = False
    """Whether each server loads its packages by itself all the same."""

    def __init__(
        self,
        folder: Path,
        *,
        voters: int = 3,
        settings: Mapping[str, object] | None = None,
        cluster_id: str = "integration",
    ) -> None:
        super().__init__(
            folder,
            voters=voters,
            settings={**SETTINGS, **(settings or {})},
            cluster_id=cluster_id,
            environment={"PYTHONPATH": str(ROOT)},
        )
        self._sealed: set[int] = set()

    @property
    def voters(self) -> list[LocalNode]:
        return [node for node in self.nodes.values() if node.is_voter]

    @property
    def running_nodes(self) -> list[LocalNode]:
        return [node for node in self.nodes.values() if node.is_running]

    def start(self, node: LocalNode) -> None:
        if self.loads_anew or not fork_server.address():
            super().start(node)
            return
        with node.log_path.open("ab") as log:
            process = fork_server.ForkedProcess(
                self.program,
                ["server", "--config", str(node.config_path)],
                files=(log.fileno(), log.fileno()),
                environment=self.environment,
            )
        node.process = cast("Any", process)

    def command(self, *arguments: str) -> str:
        done = self.run(*arguments)
        if done.status != 0:
            raise ClusterError(
                f"quorate {' '.join(arguments)} failed with {done.status}: {done.err.strip()}"
            )
        return done.out

    def format_all(self) -> None:
        for node in self.nodes.values():
            self.format(node)

    def start_all(self) -> None:
        """Start every node that is not running, and wait until all are ready."""
        for node in self.nodes.values():
            if not node.is_running:
                self.start(node)
        self.wait_ready(list(self.nodes.values()))

    # ------------------------------------------------------------------ faults

    def kill_together(self, nodes: Sequence[LocalNode]) -> None:
        """SIGKILL all of them before any is waited for: to them, a power cut."""
        for node in nodes:
            if node.process is not None:
                node.process.send_signal(signal.SIGKILL)
        for node in nodes:
            self.kill(node)

    def freeze(self, node: LocalNode) -> None:
        """Send SIGSTOP: the process keeps its connections and sends nothing."""
        assert node.process is not None
        node.process.send_signal(signal.SIGSTOP)
        self._sealed.add(node.id)

    def thaw(self, node: LocalNode) -> None:
        if node.process is not None and node.process.poll() is None:
            node.process.send_signal(signal.SIGCONT)
        self._sealed.discard(node.id)

    def end_all(self) -> None:
        """Leave nothing running. SIGKILL is enough: these nodes are not used again."""
        for node in self.nodes.values():
            if node.is_running and node.process is not None:
                node.process.kill()
        for node in self.nodes.values():
            if node.process is not None:
                node.process.wait()

    # ------------------------------------------------------------------ looking

    def run(
        self,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        limit: Callable[[], None] | None = None,
    ) -> Ended:
        """``quorate ARGUMENTS`` to its end. ``limit`` runs in the child before it starts."""
        done = fork_server.run(
            "quorate",
            arguments,
            environment={**self.environment, **(environment or {})},
            timeout=COMMAND_SECONDS_MAX,
            limit=limit,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def ask(self, *arguments: str) -> Any:
        """A command against this cluster, its result as JSON."""
        return self.run("--bootstrap", ",".join(self.addresses), "-o", "json", *arguments).json

    def serve(self, node: LocalNode, *flags: str) -> Ended:
        """Run the server of a node that is expected to end by itself."""
        return self.run("server", "--config", str(node.config_path), *flags)

    def find_leader(self) -> LocalNode | None:
        for node in self.nodes.values():
            if (
                node.is_running
                and node.id not in self._sealed
                and self.metric(node, "quorate_raft_can_write") == 1
            ):
                return node
        return None

    def leader(self, seconds: float = PATIENCE_SECONDS) -> LocalNode:
        """The node that leads and takes writes, once there is one."""
        return self.until("a leader", self.find_leader, seconds)

    def until(
        self, what: str, find: Callable[[], Found | None], seconds: float = PATIENCE_SECONDS
    ) -> Found:
        """Ask again and again until there is an answer.

        Raises:
            ClusterError: None came in time, or a process ended meanwhile.
        """
        deadline = time.monotonic() + seconds
        while True:
            found = find()
            if found is not None and found is not False:
                return found
            if time.monotonic() > deadline:
                raise ClusterError(f"{what}: not within {seconds:g} s")
            time.sleep(POLL_SECONDS)

    def until_logged(self, node: LocalNode, words: str, seconds: float = PATIENCE_SECONDS) -> str:
        """The first line of a node's log that contains ``words``, once it is there."""

        def find() -> str | None:
            text = node.log_path.read_text(errors="replace")
            return next((line for line in text.splitlines() if words in line), None)

        return self.until(f"{words!r} in the log of node {node.id}", find, seconds)

    def wait_ended(self, node: LocalNode, seconds: float = PATIENCE_SECONDS) -> int:
        """The exit code of a server that ends by itself."""
        assert node.process is not None
        return node.process.wait(seconds)

    def ended_by_itself(self) -> list[str]:
        """Return servers that ended without being stopped, with the ends of their logs."""
        return [
            f"node {node.id} ended with {node.process.returncode}:\n{node.log_tail()}"
            for node in self.nodes.values()
            if node.process is not None and node.process.poll() not in (None, -signal.SIGKILL, 0)
        ]

    def report(self) -> str:
        """The ends of all logs."""
        return "\n".join(
            f"---- node {node.id} ({node.log_path})\n{node.log_tail(LOG_LINES_SHOWN)}"
            for node in self.nodes.values()
        )


@contextlib.contextmanager
def running(
    folder: Path,
    *,
    voters: int = 3,
    settings: Mapping[str, object] | None = None,
    cluster_id: str = "integration",
    starts: bool = True,
) -> Iterator[Processes]:
    """A formatted cluster, started if ``starts``; ended in any case.

    What fails inside is reported with the ends of all logs.
    """
    cluster = Processes(folder, voters=voters, settings=settings, cluster_id=cluster_id)
    try:
        cluster.format_all()
        if starts:
            cluster.start_all()
        yield cluster
    except BaseException as error:
        error.add_note(cluster.report())
        raise
    finally:
        cluster.end_all()

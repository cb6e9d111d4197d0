"""Another release of this repository, as processes: files from git, dependencies from here."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from quorate.demo.local_cluster import LocalCluster, LocalNode
from tests.integration.processes import COMMAND_SECONDS_MAX, Ended, Processes

SAFE_PATH = {"PYTHONSAFEPATH": "1"}
"""Else Python takes modules from the working folder, which is that of this release."""
MARK = "event=older_release_loaded"


def mark(older: Path) -> None:
    """Let every process of a checkout write ``MARK`` to its log."""
    with (older / "quorate" / "__init__.py").open("a", encoding="utf-8") as module:
        module.write(f"\n__import__('sys').stderr.write({MARK + chr(10)!r})\n")


class TwoReleases(Processes):
    """A cluster whose nodes are of either release. Each is of the older one at first."""

    loads_anew = True

    def __init__(self, folder: Path, older: Path, *, settings: Mapping[str, object]) -> None:
        super().__init__(folder, settings=settings)
        self.older = older
        self.newer_nodes: set[int] = set()

    def start(self, node: LocalNode) -> None:
        here = self.environment
        newer = {**here, **SAFE_PATH}
        self.environment = newer if node.id in self.newer_nodes else self._older_environment()
        try:
            LocalCluster.start(self, node)
        finally:
            self.environment = here

    def format(self, node: LocalNode) -> str:
        """By the release that the node is of."""
        if node.id in self.newer_nodes:
            return super().format(node)
        self.configure(node)
        done = self.run_older(
            "format", "--config", str(node.config_path), "--cluster-id", self.cluster_id,
            *(
                ("--initial-voters", self.initial_voters)
                if node.is_voter
                else ("--no-initial-voters",)
            ),
        )  # fmt: skip
        assert done.status == 0, done.err
        return done.out

    def run_older(self, *arguments: str) -> Ended:
        """``quorate ARGUMENTS`` of the older release, to its end."""
        done = subprocess.run(
            [sys.executable, "-m", "quorate", *arguments],
            env=self._older_environment(),
            cwd=self.older,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS_MAX,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def version_of(self, node: LocalNode) -> str:
        """The folder that a running node has loaded its code from."""
        assert node.process is not None
        environment = Path(f"/proc/{node.process.pid}/environ").read_bytes().split(b"\0")
        (path,) = (each for each in environment if each.startswith(b"PYTHONPATH="))
        return path.decode().partition("=")[2]

    def _older_environment(self) -> dict[str, str]:
        return {**self.environment, **SAFE_PATH, "PYTHONPATH": str(self.older)}

"""Start, kill and stop the three processes of a peer system."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

STOP_SECONDS_MAX = 10.0


class PeerError(Exception):
    """A peer system failed; it is omitted from the report."""


class Processes:
    """Processes by number, 0 to 2. ``stop`` ends all of them and may be called twice."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[int, subprocess.Popen[bytes]] = {}

    def start(
        self, number: int, command: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> None:
        """Start one process; its output goes to ``<number>.log``."""
        with (self._folder / f"{number}.log").open("ab") as log:
            self._running[number] = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment
            )

    def pids(self) -> dict[int, int]:
        """Return the process ids by number."""
        return {number: process.pid for number, process in self._running.items()}

    def kill(self, number: int) -> None:
        """Send SIGKILL to one process and wait until it has ended."""
        process = self._running.pop(number)
        process.kill()
        process.wait()

    def stop(self) -> None:
        """Terminate all processes, by SIGKILL if necessary."""
        for process in self._running.values():
            process.terminate()
        for process in self._running.values():
            try:
                process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._running.clear()

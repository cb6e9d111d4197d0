"""What every other system can do: be loaded, lose its leader, and stop."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from bench.peers.load_program import Kind, Load, Place, Row, run_load_program
from bench.peers.processes import PeerError, Processes

READY_SECONDS_MAX = 90.0
_PAUSE_SECONDS = 0.1


class Peer(ABC):
    """Three nodes of another system on loopback, numbered 0 to 2; ``close`` stops them.

    The constructor starts them and waits for a leader. It raises ``PeerError`` if there is none.
    """

    name: ClassVar[str]
    loads: ClassVar[Mapping[tuple[Kind, Place], str]]
    """The load program's mode for each load that the system has."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes = Processes(folder)
        self.prepare()
        for number in range(3):
            self.start(number, is_first=True)
        self.leader()

    @staticmethod
    @abstractmethod
    def is_installed() -> bool:
        """Return whether ``bench/peers/install`` built the system and its load program."""

    @abstractmethod
    def prepare(self) -> None:
        """Choose ports and write the configuration."""

    @abstractmethod
    def start(self, number: int, *, is_first: bool) -> None:
        """Start one node, for the first time or after a kill."""

    @abstractmethod
    def find_leader(self) -> int | None:
        """Return the leader's number once all three nodes are up and agree, else None.

        Raises:
            OSError, ValueError: A node does not answer yet.
        """

    @abstractmethod
    def load_command(self, load: Load, mode: str, number: int) -> Sequence[str]:
        """Return the load program's command; ``number`` is the node to ask."""

    @abstractmethod
    def failover_command(self) -> Sequence[str]:
        """Return a command that writes until killed and prints when each write was acknowledged."""

    def leader(self) -> int:
        """Return the number of the leader, once all three nodes are up.

        Raises:
            PeerError: No leader within the time limit.
        """
        deadline = time.monotonic() + READY_SECONDS_MAX
        while time.monotonic() < deadline:
            try:
                found = self.find_leader()
            except (OSError, ValueError):
                found = None
            if found is not None:
                return found
            time.sleep(_PAUSE_SECONDS)
        raise PeerError(f"{self.name} has no leader")

    def load(self, load: Load) -> Row:
        """Run the load; ``loads`` has it."""
        leader = self.leader()
        number = leader if load.place is Place.LEADER else (leader + 1) % 3
        command = self.load_command(load, self.loads[load.kind, load.place], number)
        return run_load_program(command, self.processes.pids(), leader)

    def kill(self, number: int) -> None:
        """Send SIGKILL to one node and wait until it has ended."""
        self.processes.kill(number)

    def restart(self, number: int) -> None:
        """Restart a killed node and wait until all three are up."""
        self.start(number, is_first=False)
        self.leader()

    def close(self) -> None:
        """Stop the nodes."""
        self.processes.stop()

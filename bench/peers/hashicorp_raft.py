"""hashicorp/raft: three nodes on loopback (``programs/hraft``), loaded by ``quorateload``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from bench.peers import go_load
from bench.peers.installed import has_programs, program
from bench.peers.load_program import Kind, Load, Place
from bench.peers.peer import Peer
from quorate.demo.local_cluster import HOST
from quorate.demo.ports import free_ports


class HashicorpRaft(Peer):
    """One cluster."""

    name = "hashicorp-raft"
    loads: ClassVar = {
        (Kind.WRITE, Place.LEADER): "unary-write",
        (Kind.LINEARIZABLE, Place.LEADER): "unary-linearizable",
        (Kind.LOCAL, Place.LEADER): "unary-local",
    }

    @staticmethod
    def is_installed() -> bool:
        """Return whether the node and the load program were built."""
        return has_programs("hraft", "quorateload")

    def prepare(self) -> None:
        """Choose ports."""
        ports = free_ports(6)
        self._clients = [f"{HOST}:{port}" for port in ports[:3]]
        self._peers = [f"{HOST}:{port}" for port in ports[3:]]

    def start(self, number: int, *, is_first: bool) -> None:
        """Start one node, without the state that a former process wrote."""
        del is_first
        (self.folder / f"n{number}" / "state").unlink(missing_ok=True)
        self.processes.start(
            number,
            [
                str(program("hraft")), "-id", str(number), "-clients", ",".join(self._clients),
                "-peers", ",".join(self._peers), "-folder", str(self.folder / f"n{number}"),
            ],
        )  # fmt: skip

    def find_leader(self) -> int | None:
        """Read the state that every node writes into its folder."""
        states = [(self.folder / f"n{number}" / "state").read_text() for number in range(3)]
        if "Leader" in states and states.count("Follower") == 2:
            return states.index("Leader")
        return None

    def load_command(self, load: Load, mode: str, number: int) -> Sequence[str]:
        """Unary calls, as a raft library has no protocol of its own for clients."""
        return go_load.load_command("quorateload", load, mode, self._clients[number])

    def failover_command(self) -> Sequence[str]:
        """Write again and again."""
        return go_load.failover_command("quorateload", self._clients)

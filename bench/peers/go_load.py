"""The command line of the load programs in Go (`programs/measure/measure.go`)."""

from __future__ import annotations

from collections.abc import Sequence

from bench.peers.installed import program
from bench.peers.load_program import Load


def load_command(name: str, load: Load, mode: str, endpoint: str) -> list[str]:
    """Return the command that runs ``load`` against one node."""
    return [
        str(program(name)), "-endpoints", endpoint, "-mode", mode,
        "-clients", str(load.clients), "-seconds", f"{load.seconds}s",
        "-warm-up", f"{load.warm_up_seconds}s",
    ]  # fmt: skip


def failover_command(name: str, endpoints: Sequence[str]) -> list[str]:
    """Return the command that writes to whichever node answers, until killed."""
    return [str(program(name)), "-mode", "failover", "-endpoints", ",".join(endpoints)]

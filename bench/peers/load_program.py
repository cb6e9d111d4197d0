"""Run a load program, and read the processor time of the loaded nodes in its measured time.

A load program prints BEGIN and END around that time, and then one JSON object
(`programs/measure/measure.go` says which).
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

import psutil

from bench.peers.processes import PeerError

Row: TypeAlias = dict[str, Any]
_MIB = 1 << 20


class Kind(StrEnum):
    """What each client of a load does again and again."""

    WRITE = "write"
    LINEARIZABLE = "linearizable"
    """Read what was acknowledged before the read began."""
    LOCAL = "local"
    """Read what the asked node has."""
    WATCH = "watch"
    """Watch; there is one writer besides, and its rate is measured."""


class Place(StrEnum):
    """Which node is asked."""

    LEADER = "leader"
    FOLLOWER = "follower"


@dataclass(frozen=True, slots=True)
class Load:
    """One measurement, with ``clients`` closed loops."""

    kind: Kind
    place: Place
    clients: int
    seconds: float
    warm_up_seconds: float


def run_load_program(command: Sequence[str], nodes: Mapping[int, int], leader: int) -> Row:
    """Run the program and return its figures, with ``leader_us`` and ``followers_us``.

    Those are microseconds of the nodes' processor time per operation, of all threads.
    ``resident_mib`` is the leader's memory at the end.

    Args:
        command: The program and its arguments.
        nodes: Process ids by the number of the node.
        leader: Its number.

    Raises:
        PeerError: The program failed, or an operation did.
    """
    before: dict[int, float] = {}
    after: dict[int, float] = {}
    resident = 0.0
    lines: list[str] = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for line in process.stdout:
            if line == "BEGIN\n":
                before = _processor_seconds(nodes)
            elif line == "END\n":
                after = _processor_seconds(nodes)
                resident = psutil.Process(nodes[leader]).memory_info().rss / _MIB
            else:
                lines.append(line)
        errors = process.stderr.read()
    if process.returncode != 0 or not lines:
        raise PeerError(f"{command[0]} failed: {errors.strip()}")
    row: Row = json.loads(lines[-1])
    if row["errors"] or not row["operations"]:
        raise PeerError(f"{row['errors']} operations failed: {errors.strip()}")
    used = {number: (after[number] - before[number]) * 1e6 / row["operations"] for number in nodes}
    row["leader_us"] = used.pop(leader)
    row["followers_us"] = sorted(used.values())
    row["resident_mib"] = resident
    return row


def _processor_seconds(nodes: Mapping[int, int]) -> dict[int, float]:
    times = {number: psutil.Process(pid).cpu_times() for number, pid in nodes.items()}
    return {number: each.user + each.system for number, each in times.items()}

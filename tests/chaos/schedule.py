"""The schedule of faults: drawn from one seed, in two lanes that run at the same time."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """The kinds of faults; the values are their names in reports."""

    KILL = "SIGKILL"
    KILL_ALL = "SIGKILL of all nodes at once"
    KILL_MAJORITY = "SIGKILL of a majority at once"
    STOP = "SIGTERM"
    PAUSE = "SIGSTOP, SIGCONT"
    DISK_FULL = "disk full"
    SYNC_FAILS = "fsync error"
    DISK_HANGS = "fsync hangs"
    ISOLATE = "node isolated, connections held"
    ISOLATE_RESET = "node isolated, connections reset"
    ONE_WAY_IN = "nothing reaches a node"
    ONE_WAY_OUT = "nothing leaves a node"
    PAIR = "two nodes parted"
    DELAY = "slow links of a node"
    FLAP = "links of a node flap"
    CLIENT_RESET = "clients reset by a node"
    CLIENT_ONE_WAY = "answers of a node held"
    CLIENT_DELAY = "slow link between clients and a node"


Weights = dict[Kind, int]
PROCESS: Weights = {
    Kind.KILL: 8,
    Kind.KILL_ALL: 2,
    Kind.KILL_MAJORITY: 2,
    Kind.STOP: 2,
    Kind.PAUSE: 6,
    Kind.DISK_FULL: 2,
    Kind.SYNC_FAILS: 2,
    Kind.DISK_HANGS: 3,
}
NETWORK: Weights = {
    Kind.ISOLATE: 4,
    Kind.ISOLATE_RESET: 3,
    Kind.ONE_WAY_IN: 3,
    Kind.ONE_WAY_OUT: 3,
    Kind.PAIR: 4,
    Kind.DELAY: 3,
    Kind.FLAP: 2,
    Kind.CLIENT_RESET: 3,
    Kind.CLIENT_ONE_WAY: 3,
    Kind.CLIENT_DELAY: 2,
}
ISOLATES = frozenset({Kind.ISOLATE, Kind.ISOLATE_RESET})
SECONDS_LONGEST = 5.0
DEPOSES_SECONDS = 4.0
"""Seconds after which an isolated leader has resigned (1.5 fetch timeouts of 2 s) and another one
is elected."""
ISOLATED_SECONDS_LONGEST = 8.0
CALM_SECONDS = (2.0, 8.0)
"""Bounds of the pause between two faults of one lane."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault, for ``seconds``, after ``calm_seconds`` without one in its lane."""

    number: int
    kind: Kind
    is_at_leader: bool
    """Whether the fault affects the leader at that time; otherwise the ``place``-th node."""
    place: int
    seconds: float
    calm_seconds: float
    amount: float
    """Between 0 and 1: the strength of a fault whose kind has degrees, such as a delay."""


def draw_faults(rng: random.Random, weights: Weights, nodes: int) -> Iterator[Fault]:
    """Faults without end."""
    number = 0
    while True:
        (kind,) = rng.choices(list(weights), list(weights.values()))
        # Most isolations of a node are long enough to depose a leader, which is their purpose.
        share, shortest, longest = (
            (0.6, DEPOSES_SECONDS, ISOLATED_SECONDS_LONGEST)
            if kind in ISOLATES
            else (0.3, 2.0, SECONDS_LONGEST)
        )
        is_long = rng.random() < share
        yield Fault(
            number,
            kind,
            is_at_leader=rng.random() < 0.5,
            place=rng.randrange(nodes),
            seconds=rng.uniform(shortest, longest) if is_long else rng.uniform(0.1, 2.0),
            calm_seconds=rng.uniform(*CALM_SECONDS),
            amount=rng.random(),
        )
        number += 1

"""When which nodes are killed and how they come back: a plan drawn from one seed.

Every other process run of a node uses ``VolatileFileSystem``, where a SIGKILL also loses all
unsynced data, as a power loss does.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

MOMENT_MS_MAX = 250
DOWN_MS_MAX = 300


class Victims(Enum):
    """The nodes that are killed in a round."""

    LEADER = "the leader"
    FOLLOWER = "a follower"
    ANY = "any node, possibly one that is just starting"
    MAJORITY = "the leader and a follower at once"
    ALL = "all nodes at once"


@dataclass(frozen=True, slots=True)
class Round:
    """One kill: ``moment_ms`` after the cluster was seen writing, for ``down_ms``."""

    number: int
    victims: Victims
    moment_ms: int
    down_ms: int
    waits_until_ready: bool
    """Whether the next round waits for the victims to be ready; if not, it may hit them as they
    recover."""
    is_volatile_next: bool
    """Whether the victims' next process runs lose unsynced data."""


_WEIGHTS = {
    Victims.LEADER: 5,
    Victims.FOLLOWER: 2,
    Victims.ANY: 3,
    Victims.MAJORITY: 1,
    Victims.ALL: 2,
}


def draw_rounds(rng: random.Random, count: int) -> Iterator[Round]:
    """``count`` rounds."""
    for number in range(count):
        (victims,) = rng.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
        yield Round(
            number,
            victims,
            moment_ms=rng.randrange(MOMENT_MS_MAX),
            down_ms=rng.choice((0, 0, rng.randrange(DOWN_MS_MAX))),
            waits_until_ready=rng.random() < 0.6,
            is_volatile_next=rng.random() < 0.6,
        )

"""A consumer over random histories of which parts are lost (``tests.support.consumer_world``)."""

from __future__ import annotations

import random

from quorate.client.log_consumer import ResetPolicy
from simulation.invariants.violation import Violation
from tests.simulation.experiments.experiment import Experiment
from tests.support.consumer_world import REPLICAS, STEPS_MAX, follow

NAME = "divergence-located"


def run(seed: int) -> Violation | None:
    """Follow one random history: losses are found where they are, nothing is skipped or doubled."""
    rng = random.Random(seed)
    steps = [_step(rng) for _ in range(rng.randint(5, STEPS_MAX))]
    try:
        follow(rng.choice(tuple(ResetPolicy)), steps)
    except AssertionError as error:
        return Violation(NAME, "a consumer lost its way", steps=steps, error=repr(error))
    return None


def _step(rng: random.Random) -> tuple[str, *tuple[int, ...]]:
    name = rng.choice(
        ("append", "copy", "elect", "elect_untold", "poll", "poll", "poll_replaced", "restart")
    )
    match name:
        case "append":
            return name, rng.randint(1, 4)
        case "copy":
            return name, rng.randrange(REPLICAS), rng.randint(0, 12)
        case "elect" | "elect_untold" | "poll_replaced":
            return name, rng.randrange(REPLICAS)
        case _:
            return (name,)


LOST_HISTORIES = Experiment("lost histories", run)

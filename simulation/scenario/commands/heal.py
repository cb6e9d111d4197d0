"""heal

Repair every link; messages that were held are queued again.
"""

from __future__ import annotations

from simulation.scenario.grammar import Arguments
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    args.finish()
    world.heal()

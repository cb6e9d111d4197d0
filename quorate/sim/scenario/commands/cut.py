"""cut 1->3 2--* ...

Lose everything on these links, also what is on its way, until ``heal``.
"""

from __future__ import annotations

from quorate.sim.scenario.grammar import Arguments
from quorate.sim.scenario.links import links_of
from quorate.sim.scenario.world import World


def run(world: World, args: Arguments) -> None:
    world.cut |= links_of(world, args)
    world.queue = [each for each in world.queue if (each.sender, each.to) not in world.cut]

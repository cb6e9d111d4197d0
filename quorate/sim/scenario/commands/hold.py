"""hold 1->3 2--* ...

Delay everything sent on these links from now on until ``heal``.
"""

from __future__ import annotations

from quorate.sim.scenario.grammar import Arguments
from quorate.sim.scenario.links import links_of
from quorate.sim.scenario.world import World


def run(world: World, args: Arguments) -> None:
    world.hold |= links_of(world, args)

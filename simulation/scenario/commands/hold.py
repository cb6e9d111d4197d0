"""hold 1->3 2--* ...

Delay all messages sent on these links from now until ``heal``.
"""

from __future__ import annotations

from simulation.scenario.grammar import Arguments
from simulation.scenario.links import links_of
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    world.hold |= links_of(world, args)

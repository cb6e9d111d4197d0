"""hold 1->3 2--* ...

Delay everything sent on these links from now on until ``heal``.
"""

from __future__ import annotations

from tests.scenario.grammar import Arguments
from tests.scenario.links import links_of
from tests.scenario.world import World


def run(world: World, args: Arguments) -> None:
    world.hold |= links_of(world, args)

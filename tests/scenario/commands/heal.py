"""heal

Repair every link; what was held is on its way again.
"""

from __future__ import annotations

from tests.scenario.grammar import Arguments
from tests.scenario.world import World


def run(world: World, args: Arguments) -> None:
    args.finish()
    world.heal()

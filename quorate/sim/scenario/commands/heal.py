"""heal

Repair every link; what was held is on its way again.
"""

from __future__ import annotations

from quorate.sim.scenario.grammar import Arguments
from quorate.sim.scenario.world import World


def run(world: World, args: Arguments) -> None:
    args.finish()
    world.heal()

"""advance ms=2000

Move all clocks together while messages and disks move at once.
"""

from __future__ import annotations

from simulation.scenario.grammar import Arguments
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    ms = args.number("ms")
    args.finish()
    world.advance(ms)

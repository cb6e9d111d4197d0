"""advance ms=2000

Move all clocks together while messages and disks move at once.
"""

from __future__ import annotations

from quorate.sim.scenario.grammar import Arguments
from quorate.sim.scenario.world import World


def run(world: World, args: Arguments) -> None:
    ms = args.number("ms")
    args.finish()
    world.advance(ms)

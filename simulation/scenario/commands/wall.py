"""wall N ms=-1000

Set N's wall clock forward or back. Timers do not use the wall clock.
"""

from __future__ import annotations

from simulation.scenario.grammar import Arguments
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    node_id, ms = args.node(), args.number("ms")
    args.finish()
    world.running(node_id).clock.wall_offset_ms += ms

"""wall N ms=-1000

Somebody sets N's wall clock, on or back; its timers go by another one.
"""

from __future__ import annotations

from simulation.scenario.grammar import Arguments
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    node_id, ms = args.node(), args.number("ms")
    args.finish()
    world.running(node_id).clock.wall_offset_ms += ms

"""pause N ms=3000

Pause N's process for that long: its clock moves, and then all missed deadlines are due at once.
"""

from __future__ import annotations

from simulation.scenario.grammar import Arguments
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    node_id, ms = args.node(), args.number("ms")
    args.finish()
    world.pause(node_id, ms)

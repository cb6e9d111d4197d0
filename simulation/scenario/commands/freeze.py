"""freeze N ms=3000

N's process stands still for that long: its clock moves, and it wakes to all its deadlines at once.
"""

from __future__ import annotations

from simulation.scenario.grammar import Arguments
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    node_id, ms = args.node(), args.number("ms")
    args.finish()
    world.freeze(node_id, ms)

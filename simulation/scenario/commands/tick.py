"""tick N ms=500

Move N's clock and wake the node at its deadlines. Nothing is delivered or written.
"""

from __future__ import annotations

from simulation.scenario.grammar import Arguments
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    node_id, ms = args.node(), args.number("ms")
    args.finish()
    world.tick(node_id, ms)

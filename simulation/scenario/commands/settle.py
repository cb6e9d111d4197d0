"""settle [1 2 ...] [disks=(1,2)]

Repeat deliver and persist for these nodes (default: all) until nothing moves. Only the disks in
``disks`` write (default: those of the same nodes). Clocks stand still.
"""

from __future__ import annotations

from simulation.scenario.grammar import Arguments
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    nodes = args.nodes() or tuple(sorted(world.members))
    disks = args.numbers("disks") or nodes
    args.finish()
    world.settle(nodes, disks)

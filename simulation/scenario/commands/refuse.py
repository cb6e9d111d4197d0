"""refuse 2->1

Report to node 2 that an immediate reconnect to node 1 was refused, whether or not 1 is running.
"""

from __future__ import annotations

from simulation.scenario.grammar import Arguments
from simulation.scenario.links import links_of
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    for node_id, peer in sorted(links_of(world, args)):
        world.refuse(node_id, peer)

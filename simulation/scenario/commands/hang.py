"""hang N [until=now]

Node N's disk takes what it is given and completes nothing; with ``until=now`` it goes on.
"""

from __future__ import annotations

from simulation.scenario.grammar import Arguments
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    node_id, is_over = args.node(), args.text("until") == "now"
    args.finish()
    world.member(node_id)
    if is_over:
        world.hung.discard(node_id)
        world.write(node_id)
    else:
        world.hung.add(node_id)

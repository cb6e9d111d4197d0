"""hang N [until=now]

Let node N's disk accept writes but complete none; ``until=now`` ends that.
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

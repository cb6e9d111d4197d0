"""checkpoint N

Write a checkpoint of node N's image now, whether or not one is due.
"""

from __future__ import annotations

from simulation.scenario.grammar import Arguments
from simulation.scenario.outlet import Kind
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    node_id = args.node()
    args.finish()
    replica = world.running(node_id).replica

    def write() -> None:
        written = replica.checkpoints.write_now() if replica is not None else None
        result = f"checkpoint {written}" if written is not None else "no checkpoint: nothing new"
        world.announce(Kind.EVENT, f"{node_id}: {result}")

    world.step(node_id, write)

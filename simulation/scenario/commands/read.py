"""read N

Ask node N's controller for a linearizable read position. The answer is printed when it comes.
"""

from __future__ import annotations

from simulation.scenario.grammar import Arguments
from simulation.scenario.outlet import Kind
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    node_id = args.node()
    args.finish()
    replica = world.running(node_id).replica

    begun = world.run_observer.read_begins()

    def found(offset: int | None) -> None:
        outcome = "failed" if offset is None else f"confirmed at {offset}"
        world.announce(Kind.ANSWER, f"{node_id} read {outcome}")
        if offset is not None:
            world.outcomes.append(lambda: world.run_observer.read_confirmed(node_id, begun, offset))

    def ask() -> None:
        if replica is not None:
            replica.controller.confirm_read(found)
            replica.turn()

    world.step(node_id, ask)

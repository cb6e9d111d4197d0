"""resign N [shutdown=yes]

Let leader N resign; with ``shutdown`` it does not campaign again either.
"""

from __future__ import annotations

from quorum.core.contract.local_events import Resign, ShutDown
from simulation.scenario.grammar import Arguments
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    node_id, is_shutdown = args.node(), args.text("shutdown") == "yes"
    args.finish()
    replica = world.running(node_id).replica
    event = ShutDown() if is_shutdown else Resign()

    def on_local_event() -> None:
        if replica is not None:
            replica.on_local_event(event)

    world.step(node_id, on_local_event)

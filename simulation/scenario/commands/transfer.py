"""transfer N [to=M]

Ask leader N to transfer leadership to voter M (default: the voter with the longest log). The
answer is printed when it comes.
"""

from __future__ import annotations

from quorum.core.contract.local_events import NO_TOKEN, TransferLeadership
from quorum.core.contract.output import RequestSettled
from quorum.types import NO_NODE
from simulation.operator import asked
from simulation.scenario.grammar import Arguments
from simulation.scenario.outlet import Kind
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    node_id, target = args.node(), args.number("to", NO_NODE)
    args.finish()
    replica = world.running(node_id).replica

    def settled(outcome: RequestSettled) -> None:
        world.coverage.answered(TransferLeadership, outcome.error)
        world.announce(
            Kind.ANSWER, f"{node_id} answers transfer: {outcome.error.name}: {outcome.message}"
        )

    def ask() -> None:
        if replica is not None:
            origin = asked("transfer from", node_id)
            replica.ask(TransferLeadership(NO_TOKEN, target, origin), settled)

    world.step(node_id, ask)

"""producer N [id=7 epoch=32766]

Ask node N's controller for a new producer id, or for the next epoch of the given producer id and
epoch. The answer is printed when it comes, as id/epoch.
"""

from __future__ import annotations

from quorate.controller.requests import Answer, RequestContext
from quorum.errors import ErrorCode
from simulation.scenario.grammar import Arguments
from simulation.scenario.outlet import Kind
from simulation.scenario.world import World
from statemachine.commands import InitProducerId


def run(world: World, args: Arguments) -> None:
    node_id = args.node()
    command = InitProducerId(None, args.number("id", -1), args.number("epoch", -1))
    args.finish()
    replica = world.running(node_id).replica

    def answered(answer: Answer) -> None:
        if answer.code is not ErrorCode.NONE:
            world.announce(Kind.ANSWER, f"{node_id} allocates no producer id: {answer.code.name}")
            return
        found = answer.result
        identity = f"{found['producer_id']}/{found['producer_epoch']}"
        at = f"{answer.offset}/{answer.epoch}"
        world.announce(Kind.ANSWER, f"{node_id} allocates producer {identity} at {at}")
        world.outcomes.append(lambda: world.run_observer.acknowledged(node_id, answer.offset))

    def submit() -> None:
        if replica is not None:
            replica.controller.submit(command, RequestContext(), answered)
            replica.turn()

    world.step(node_id, submit)

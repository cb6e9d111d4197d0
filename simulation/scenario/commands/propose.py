"""propose 1 a b=2 c*40

Submit one command per item to node 1's controller, all at once. In the example: ``a`` with its own
name as value, ``b`` with value 2, and c0 to c39. Answers are printed when they come.
"""

from __future__ import annotations

from collections.abc import Iterator

from quorate.controller.requests import Answer, RequestContext
from quorum.errors import ErrorCode
from simulation.scenario.grammar import Arguments
from simulation.scenario.items import set_item
from simulation.scenario.outlet import Kind
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    node_id = args.node()
    items = list(_items(args))
    args.finish()
    replica = world.running(node_id).replica

    def answered(name: str, answer: Answer) -> None:
        found = "done" if answer.code is ErrorCode.NONE else answer.code.name
        at = f" at {answer.offset}/{answer.epoch}" if answer.offset >= 0 else ""
        world.announce(Kind.ANSWER, f"{node_id} answers {name}: {found}{at}")
        if answer.code is ErrorCode.NONE:
            world.outcomes.append(lambda: world.run_observer.acknowledged(node_id, answer.offset))

    def submit_all() -> None:
        if replica is not None:
            for name, value in items:
                replica.controller.submit(
                    set_item(name, value),
                    RequestContext(),
                    lambda answer, name=name: answered(name, answer),  # type: ignore[misc]
                )
            replica.turn()

    world.step(node_id, submit_all)


def _items(args: Arguments) -> Iterator[tuple[str, str]]:
    for word in args.rest():
        name, star, count = word.partition("*")
        if star:
            yield from (
                (f"{name}{n}", f"{name}{n}") for n in range(args.number_in("a count", count))
            )
        else:
            name, _, value = word.partition("=")
            yield name, value or name

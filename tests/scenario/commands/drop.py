"""drop [to=2] [from=1] [type=Fetch] [count=1]

Lose what is queued now and matches.
"""

from __future__ import annotations

from tests.scenario.filters import filter_of
from tests.scenario.grammar import Arguments, ScenarioError
from tests.scenario.outlet import Kind
from tests.scenario.render import message_line
from tests.scenario.world import World


def run(world: World, args: Arguments) -> None:
    wanted = filter_of(args)
    count = args.number("count", 0)
    args.finish()
    chosen = [each for each in world.queue if wanted.matches(each)][: count or None]
    if not chosen:
        raise ScenarioError("drop: nothing of that kind is on its way")
    for envelope in chosen:
        world.queue.remove(envelope)
        world.say(
            Kind.MESSAGE,
            f"{envelope.sender}->{envelope.to} lost {message_line(envelope.message)}",
        )

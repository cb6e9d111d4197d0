"""duplicate [to=2] [from=1] [type=Fetch] [only=requests] [count=1]

Queue a second copy of the messages that match, behind all others.
"""

from __future__ import annotations

from simulation.scenario.filters import filter_of
from simulation.scenario.grammar import Arguments, ScenarioError
from simulation.scenario.outlet import Kind
from simulation.scenario.render import message_line
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    wanted = filter_of(args)
    count = args.number("count", 0)
    args.finish()
    chosen = [each for each in world.queue if wanted.matches(each)][: count or None]
    if not chosen:
        raise ScenarioError("duplicate: no message in flight matches")
    for envelope in chosen:
        world.queue.append(envelope)
        world.announce(
            Kind.MESSAGE,
            f"{envelope.sender}->{envelope.to} again {message_line(envelope.message)}",
        )
    world.outlet.end_step()

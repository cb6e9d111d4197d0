"""deliver [to=2] [from=1] [type=Fetch] [only=requests] [count=1] [damaged=chunk]

Deliver the queued messages that match, in order; messages sent in response stay queued. With
``damaged=chunk`` one bit of the checkpoint chunk in the message is flipped.
"""

from __future__ import annotations

from simulation.scenario.filters import filter_of
from simulation.scenario.grammar import Arguments, ScenarioError
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    wanted = filter_of(args)
    count = args.number("count", 0)
    is_damaged = args.text("damaged") == "chunk"
    args.finish()
    if not world.deliver(wanted, count or None, damaged=is_damaged):
        raise ScenarioError("deliver: no message in flight matches")

"""cut [only=requests] 1->3 2--* ...

Lose all messages on these links until ``heal``, those in flight included. With ``only=requests``
responses still arrive.
"""

from __future__ import annotations

from simulation.scenario.envelopes import REQUESTS, Filter
from simulation.scenario.filters import only_of
from simulation.scenario.grammar import Arguments, ScenarioError
from simulation.scenario.links import links_of
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    only = only_of(args)
    if only not in ("", REQUESTS):
        raise ScenarioError(f"cut: only={REQUESTS}, or everything")
    links = links_of(world, args)
    if only:
        world.cut_requests |= links
    else:
        world.cut |= links
    lost = Filter(only=only)
    world.queue = [
        each
        for each in world.queue
        if (each.sender, each.to) not in links or not lost.matches(each)
    ]

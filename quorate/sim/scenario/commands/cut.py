"""cut [only=requests] 1->3 2--* ...

Lose everything on these links, also what is on its way, until ``heal``. With ``only=requests``
answers still arrive.
"""

from __future__ import annotations

from quorate.sim.scenario.envelopes import REQUESTS, Filter
from quorate.sim.scenario.filters import only_of
from quorate.sim.scenario.grammar import Arguments, ScenarioError
from quorate.sim.scenario.links import links_of
from quorate.sim.scenario.world import World


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

"""slow 1->3 2--* ms=300

Delay messages sent on these links from now on by ``ms``, until ``heal``. Only ``advance`` lets that
time pass. Messages with a shorter delay may overtake earlier ones.
"""

from __future__ import annotations

from simulation.scenario.grammar import Arguments, ScenarioError
from simulation.scenario.links import links_of
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    ms = args.number("ms")
    if ms < 1:
        raise ScenarioError("slow: ms= is 1 or more")
    world.slow.latency_ms |= dict.fromkeys(sorted(links_of(world, args)), ms)

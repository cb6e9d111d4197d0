"""quiet on|off|messages|disk

Print only results (``on``), everything (``off``), neither messages nor disk writes
(``messages``), or no disk writes (``disk``).
"""

from __future__ import annotations

from simulation.scenario.grammar import Arguments, ScenarioError
from simulation.scenario.outlet import LEVELS
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    level = args.word("on or off")
    args.finish()
    if level not in LEVELS:
        raise ScenarioError(f"quiet: one of {', '.join(LEVELS)}, not {level}")
    world.outlet.silence(level)

"""persist N [upto=1]

Let node N's disk complete its queued write groups, at most the first ``upto``.
"""

from __future__ import annotations

from simulation.scenario.grammar import Arguments, ScenarioError
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    node_id, upto = args.node(), args.number("upto", 0)
    args.finish()
    if not world.write(node_id, upto or None):
        raise ScenarioError(f"persist: node {node_id} has nothing to write")

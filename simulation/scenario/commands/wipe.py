"""wipe N [without=(3)]

Replace the disk of node N, which is down, and format it with the same command as before. Start it
with ``restart``. With ``without`` it does not wait for those voters at bootstrap.
"""

from __future__ import annotations

from dataclasses import replace

from simulation.scenario.grammar import Arguments, ScenarioError
from simulation.scenario.outlet import Kind
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    node_id, missing = args.node(), args.numbers("without")
    args.finish()
    member = world.member(node_id)
    if member.replica is not None:
        raise ScenarioError(f"wipe: node {node_id} is running")
    member.settings = replace(member.settings, bootstrap_without=missing)
    member.wipe()
    world.run_observer.reformatted(node_id, is_empty=not missing)
    world.announce(Kind.EVENT, f"{node_id}: disk wiped and formatted again")

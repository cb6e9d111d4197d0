"""lose N file=.checkpoint

Remove node N's file whose name ends so, as an operator with a shell could; the node may be running.
Of several files, the last by name is meant.
"""

from __future__ import annotations

from simulation.harness.replica_node import DIRECTORY
from simulation.scenario.grammar import Arguments, ScenarioError
from simulation.scenario.outlet import Kind
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    node_id, suffix = args.node(), args.text("file")
    args.finish()
    fs = world.member(node_id).fs
    names = [each for each in fs.list_directory(DIRECTORY) if each.endswith(suffix)]
    if not names or not suffix:
        raise ScenarioError(f"lose: node {node_id} has no file named ...{suffix}")
    fs.unlink(DIRECTORY / names[-1])
    world.damaged.add(node_id)
    world.announce(Kind.EVENT, f"{node_id}: {names[-1]} is gone")

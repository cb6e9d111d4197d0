"""corrupt N file=.log [at=100]

Flip one bit of node N's file whose name ends so: in byte ``at``, or the middle one. Of several
files, the last by name is meant.
"""

from __future__ import annotations

from simulation.harness.replica_node import DIRECTORY
from simulation.scenario.grammar import Arguments, ScenarioError
from simulation.scenario.outlet import Kind
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    node_id, suffix, at = args.node(), args.text("file"), args.number("at", -1)
    args.finish()
    fs = world.member(node_id).fs
    names = [each for each in fs.list_directory(DIRECTORY) if each.endswith(suffix)]
    if not names or not suffix:
        raise ScenarioError(f"corrupt: node {node_id} has no file named ...{suffix}")
    path = DIRECTORY / names[-1]
    size = len(fs.read_bytes(path))
    position = at if at >= 0 else size // 2
    if position >= size:
        raise ScenarioError(f"corrupt: {path.name} has only {size} bytes")
    fs.flip_bit(path, position)
    world.damaged.add(node_id)
    world.announce(Kind.EVENT, f"{node_id}: byte {position} of {path.name} is damaged")

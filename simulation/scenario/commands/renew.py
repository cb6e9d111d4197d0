"""renew N

Give node N, which is down, an empty disk: formatted with a directory id of its own and without
initial voters, as a replacement is.
"""

from __future__ import annotations

from simulation.memory_filesystem import MemoryFileSystem
from simulation.scenario.grammar import Arguments, ScenarioError
from simulation.scenario.outlet import Kind
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    node_id = args.node()
    args.finish()
    member = world.member(node_id)
    if member.replica is not None:
        raise ScenarioError(f"renew: node {node_id} is running")
    member.fs = MemoryFileSystem()
    member.disk += 1
    member.format()
    world.run_observer.reformatted(node_id, is_empty=False)
    world.announce(Kind.EVENT, f"{node_id}: has disk {member.disk} now, an empty one")

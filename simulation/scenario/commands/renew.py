"""renew N

Replace the disk of node N, which is down. The new disk is formatted as an operator formats a
replacement: with a new directory id and without initial voters.
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
    world.announce(Kind.EVENT, f"{node_id}: has the new, empty disk {member.disk}")

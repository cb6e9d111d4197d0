"""backup N [file=.log] [restore=1]

Copy node N's disk; ``restore=1`` puts the copy back, as a restored backup does. With ``file`` only
the file whose name ends so is restored; of several, the last by name. The node must be down.
"""

from __future__ import annotations

from copy import deepcopy

from simulation.harness.replica_node import DIRECTORY
from simulation.memory_filesystem import MemoryFileSystem
from simulation.scenario.grammar import Arguments, ScenarioError
from simulation.scenario.outlet import Kind
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    node_id, restores = args.node(), bool(args.number("restore", 0))
    suffix = args.text("file", "")
    args.finish()
    member = world.member(node_id)
    if member.replica is not None:
        raise ScenarioError(f"backup: node {node_id} is running")
    if not restores:
        member.backup = deepcopy(member.fs)
        world.announce(Kind.EVENT, f"{node_id}: disk copied")
        return
    if member.backup is None:
        raise ScenarioError(f"backup: there is no copy of node {node_id}'s disk")
    if suffix:
        name = _put_back(member.backup, member.fs, suffix)
        world.damaged.add(node_id)
        world.announce(Kind.EVENT, f"{node_id}: {name} is that of the copy")
        return
    member.fs = deepcopy(member.backup)
    world.run_observer.reformatted(node_id, is_empty=False)
    world.announce(Kind.EVENT, f"{node_id}: disk is that of the copy")


def _put_back(copy: MemoryFileSystem, disk: MemoryFileSystem, suffix: str) -> str:
    names = [each for each in copy.list_directory(DIRECTORY) if each.endswith(suffix)]
    if not names:
        raise ScenarioError(f"backup: the copy has no file named ...{suffix}")
    disk.write_bytes(DIRECTORY / names[-1], copy.read_bytes(DIRECTORY / names[-1]))
    return names[-1]

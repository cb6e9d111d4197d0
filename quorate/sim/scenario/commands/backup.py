"""backup N [restore=1]

Keep a copy of node N's disk, or with ``restore=1`` put that copy back: a disk that goes back in
time. The node must be down.
"""

from __future__ import annotations

from copy import deepcopy

from quorate.sim.scenario.grammar import Arguments, ScenarioError
from quorate.sim.scenario.outlet import Kind
from quorate.sim.scenario.world import World


def run(world: World, args: Arguments) -> None:
    node_id, restores = args.node(), bool(args.number("restore", 0))
    args.finish()
    member = world.member(node_id)
    if member.replica is not None:
        raise ScenarioError(f"backup: node {node_id} is running")
    if not restores:
        member.backup = deepcopy(member.fs)
        world.say(Kind.EVENT, f"{node_id}: disk copied")
        return
    if member.backup is None:
        raise ScenarioError(f"backup: there is no copy of node {node_id}'s disk")
    member.fs = deepcopy(member.backup)
    world.witness.reformatted(node_id, is_empty=False)
    world.say(Kind.EVENT, f"{node_id}: disk is that of the copy")

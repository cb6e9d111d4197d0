"""forge N offset=5

While node N is down, give the batch that holds this offset other bytes with right checksums,
and let everything stored beside the log agree: a history of its own that no check of one disk
can find. The records stay what they are, so images do not differ.
"""

from __future__ import annotations

from simulation.forgery import forge_batch
from simulation.harness.replica_node import DIRECTORY
from simulation.scenario.grammar import Arguments, ScenarioError
from simulation.scenario.outlet import Kind
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    node_id, offset = args.node(), args.number("offset", 0)
    args.finish()
    member = world.member(node_id)
    if member.replica is not None:
        raise ScenarioError(f"forge: node {node_id} is running")
    forged = forge_batch(member.fs, DIRECTORY, offset)
    if forged is None:
        raise ScenarioError(f"forge: node {node_id} has no offset {offset}")
    world.run_observer.forged.add(node_id)
    world.run_observer.disguise(*forged)
    world.damaged.add(node_id)
    world.announce(Kind.EVENT, f"{node_id}: offset {offset} has another history")

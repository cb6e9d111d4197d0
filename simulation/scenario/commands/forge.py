"""forge N offset=5

While node N is down, rewrite the batch with this offset to other bytes with correct checksums, and
update everything stored beside the log to match. No check of this disk alone can find the different
history. The records keep their contents, so images do not differ.
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

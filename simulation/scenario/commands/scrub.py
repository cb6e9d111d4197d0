"""scrub N

Let node N read and verify all its files, as it does in the background, and act on the findings.
"""

from __future__ import annotations

from quorate.replica.scrub import act_on, scrub, target_of
from simulation.scenario.grammar import Arguments
from simulation.scenario.outlet import Kind
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    node_id = args.node()
    args.finish()
    member = world.running(node_id)
    replica = member.replica
    if replica is None:
        return
    findings = scrub(member.fs, target_of(replica))
    for finding in findings:
        world.announce(Kind.EVENT, f"{node_id}: scrub: {finding.cause}")

    def act() -> None:
        for finding in findings:
            act_on(replica, finding)

    world.step(node_id, act)
    if not findings:
        world.announce(Kind.EVENT, f"{node_id}: scrub: all files are intact")

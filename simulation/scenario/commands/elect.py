"""elect N [among=(1,2)]

Move N's clock from deadline to deadline until N leads. Messages between the nodes named (default:
all) and their disk writes complete at once; other clocks stand still.
"""

from __future__ import annotations

from simulation.scenario.grammar import Arguments, ScenarioError
from simulation.scenario.world import World

_DEADLINES_MAX = 40


def run(world: World, args: Arguments) -> None:
    node_id = args.node()
    among = args.numbers("among") or tuple(sorted(world.members))
    args.finish()
    world.settle(among, among)
    for _ in range(_DEADLINES_MAX):
        replica = world.running(node_id).replica
        if replica is not None and replica.node.is_leader:
            return
        member = world.running(node_id)
        if member.deadline_ms is None:
            break
        world.tick(node_id, max(0, member.deadline_ms - member.clock.time_ms))
        world.settle(among, among)
    raise ScenarioError(f"node {node_id} is not elected")

"""trim N [within=1400]

Move N's clock, at most ``within`` ms, until its log start moves. The node decides when to trim and
to which checkpoint (KIP-630), so set ``start_offset_lag_max_ms`` low.
"""

from __future__ import annotations

from simulation.scenario.grammar import Arguments, ScenarioError
from simulation.scenario.world import World

_STEP_MS = 100


def run(world: World, args: Arguments) -> None:
    node_id, within = args.node(), args.number("within", 1400)
    args.finish()
    replica = world.running(node_id).replica
    for _ in range(0, within, _STEP_MS):
        if replica is None:
            break
        before = replica.node.log_start
        world.tick(node_id, _STEP_MS)
        if replica.node.log_start != before:
            return
    raise ScenarioError(f"trim: node {node_id} does not trim within {within} ms")

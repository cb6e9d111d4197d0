"""trim N

Let leader N trim up to its newest checkpoint now, as if it had held it for the time after
which it need not wait for anybody (630.5).
"""

from __future__ import annotations

from tests.scenario.grammar import Arguments
from tests.scenario.world import World


def run(world: World, args: Arguments) -> None:
    node_id = args.node()
    args.finish()
    member = world.running(node_id)
    before_ms = member.clock.time_ms
    world.tick(node_id, member.settings.quorum.start_offset_lag_max_ms)
    member.clock.time_ms = before_ms

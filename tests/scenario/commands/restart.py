"""restart N

Open node N's directory again and let it take its first role.
"""

from __future__ import annotations

from tests.scenario.grammar import Arguments
from tests.scenario.outlet import Kind
from tests.scenario.views import boot_lines
from tests.scenario.world import World


def run(world: World, args: Arguments) -> None:
    node_id = args.node()
    args.finish()
    world.start(node_id)
    for line in boot_lines(world.member(node_id)):
        world.say(Kind.EVENT, line)

"""restart N [at=host] [metadata_version=20] [lacks=(4,15)]

Start node N again. ``at``: its host from now on. ``metadata_version``: the highest that its release
supports. ``lacks``: record types that its release does not know, by API key; ``lacks=()``: none.
"""

from __future__ import annotations

from simulation.scenario.grammar import Arguments
from simulation.scenario.outlet import Kind
from simulation.scenario.views import boot_lines
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    node_id, host = args.node(), args.text("at")
    highest = args.number("metadata_version", 0)
    is_other_release, lacks = "lacks" in args.named, args.numbers("lacks")
    args.finish()
    if is_other_release:
        world.member(node_id).settings.lacks[node_id] = lacks
    if highest:
        world.member(node_id).settings.metadata_versions[node_id] = highest
    world.member(node_id).host = host or world.member(node_id).host
    world.start(node_id)
    for line in boot_lines(world.member(node_id)):
        world.announce(Kind.EVENT, line)

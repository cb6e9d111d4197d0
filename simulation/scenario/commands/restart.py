"""restart N [at=host] [metadata_version=20] [lacks=(4,15)]

Open node N's directory again and let it take its first role; with ``at`` it is reached at another
host from now on, with ``metadata_version`` it is of a release that supports so much, with
``lacks`` of one that does not know these record types, by API key; ``lacks=()`` knows all.
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

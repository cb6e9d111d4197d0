"""kill N [noticed=(2,3)]

End node N's process. Its machine stays up, so connections to it are refused from now on. The nodes
in ``noticed`` (default: all that are not cut off from it) are notified of that at once.
"""

from __future__ import annotations

from simulation.memory_filesystem import KEEP_ALL
from simulation.scenario.grammar import Arguments
from simulation.scenario.outlet import Kind
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    node_id = args.node()
    world.running(node_id)
    given = args.text("noticed")
    noticed = args.numbers("noticed") if given else ()
    args.finish()
    world.crash(node_id, KEEP_ALL)
    world.announce(Kind.EVENT, f"{node_id}: killed")
    world.outlet.end_step()
    for peer in noticed if given else world.up():
        if (peer, node_id) not in world.cut:
            world.refuse(peer, node_id)

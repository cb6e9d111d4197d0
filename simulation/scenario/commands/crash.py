"""crash N [lose=nothing|unflushed|torn] [at=0]

End node N's process. Write groups that are still queued are lost. With ``lose`` the machine fails
in the middle of the next write, after ``at`` more calls that change something; bytes that were not
synced are lost (``unflushed``) or partly written (``torn``).
"""

from __future__ import annotations

from simulation.memory_filesystem import KEEP_ALL, LOSE_ALL, TORN_TAIL, Faults, PowerLost
from simulation.scenario.grammar import Arguments, ScenarioError
from simulation.scenario.outlet import Kind
from simulation.scenario.world import World

_MODES = {"nothing": KEEP_ALL, "unflushed": LOSE_ALL, "torn": TORN_TAIL}


def run(world: World, args: Arguments) -> None:
    node_id = args.node()
    lose, at = args.text("lose", "nothing"), args.number("at", 0)
    args.finish()
    if lose not in _MODES:
        raise ScenarioError(f"crash: lose is one of {', '.join(_MODES)}")
    member = world.running(node_id)
    if lose != "nothing" and member.groups:
        member.fs.faults = Faults(stop_after_call=at)
        try:
            while member.groups:
                member.complete(member.groups.popleft())
        except PowerLost:
            pass
    world.crash(node_id, _MODES[lose])
    world.announce(Kind.EVENT, f"{node_id}: crashed")

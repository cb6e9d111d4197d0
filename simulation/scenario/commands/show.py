"""show [N ...] VIEW

VIEW: roles|log|replicas|voters|versions|image|files|epochs|snapshots|election|divergence|chain|
queue

Print a view of these nodes (default: all), in ascending order. ``divergence`` counts the diverging
responses that truncated each log since the view was last shown.
"""

from __future__ import annotations

from simulation.scenario.grammar import Arguments, ScenarioError
from simulation.scenario.outlet import Kind
from simulation.scenario.render import message_line
from simulation.scenario.views import VIEWS
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    *names, what = args.rest() or [""]
    args.finish()
    if what == "queue":
        lines = [
            f"{each.sender}->{each.to} {message_line(each.message)}" for each in world.queue
        ] or ["nothing in flight"]
    elif what in VIEWS:
        nodes = [args.number_in("a node", name) for name in names] or sorted(world.members)
        lines = [line for each in nodes for line in VIEWS[what](world.member(each))]
    else:
        raise ScenarioError(f"show: one of {', '.join(sorted([*VIEWS, 'queue']))}")
    for line in lines:
        world.announce(Kind.RESULT, line)

"""Search all states of a model breadth first, to the end or to the first violation.

Every state is kept whole, so that no two are ever confused, together with the step that first
reached it. A violation is reported with the shortest path to it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field

from simulation.explore.model import Model
from simulation.explore.space import Space, State, Step
from simulation.invariants.violation import Violation


@dataclass
class Report:
    """The result of an exploration."""

    model: Model
    states: int = 0
    transitions: int = 0
    depth: int = 0
    """Length of the longest shortest path."""
    is_complete: bool = False
    node_states: int = 0
    core_steps: int = 0
    """How often the production core ran."""
    packets: int = 0
    led_epochs: int = 0
    """The most epochs with a leader in one state."""
    committed_max: int = 0
    """Length of the longest committed log in any state."""
    violation: Violation | None = None
    trace: list[Step] = field(default_factory=list)
    space: Space | None = None


def explore(
    model: Model,
    *,
    states_max: int = 1 << 62,
    on_level: Callable[[int, int], None] | None = None,
) -> Report:
    """Visit every state of ``model``.

    Args:
        model: What to explore.
        states_max: Stop, incomplete, beyond this many states.
        on_level: Called with the depth and the number of states after each level.
    """
    space = Space(model)
    report = Report(model, space=space)
    first = space.first()
    seen = {first}
    parents, choices = array("q", [-1]), array("H", [0])
    level: list[tuple[int, State]] = [(0, first)]
    while level and len(seen) <= states_max:
        following: list[tuple[int, State]] = []
        for number, state in level:
            for choice, (_, made) in enumerate(space.moves(state)):
                report.transitions += 1
                if isinstance(made, Violation):
                    report.violation = made
                    report.trace = _route_to(space, number, parents, choices, made)
                    return _closed(report, space, len(seen))
                made = space.canonical(made)
                if made not in seen:
                    seen.add(made)
                    following.append((len(parents), made))
                    parents.append(number)
                    choices.append(choice)
        report.depth += bool(following)
        level = following
        if on_level is not None:
            on_level(report.depth, len(seen))
    report.is_complete = not level
    return _closed(report, space, len(seen))


def _closed(report: Report, space: Space, states: int) -> Report:
    table = space.table
    report.states = states
    report.node_states, report.core_steps = len(table.locals), table.computed
    report.packets = len(table.packets)
    report.led_epochs = max(len(each.leaders) for each in space.histories)
    report.committed_max = max(len(each.committed) for each in space.histories)
    return report


def _route_to(
    space: Space, number: int, parents: array[int], choices: array[int], violation: Violation
) -> list[Step]:
    """Return the steps that first reached state ``number``, then those to ``violation``."""
    taken: list[int] = []
    while parents[number] >= 0:
        taken.append(choices[number])
        number = parents[number]
    actual = state = space.first()
    route: list[Step] = []
    for choice in reversed(taken):
        made = next(made for at, (_, made) in enumerate(space.moves(state)) if at == choice)
        if isinstance(made, Violation):
            break
        state = space.canonical(made)
        # The same move, with the node names of this path.
        for steps, made in space.moves(actual):
            if isinstance(made, State) and space.canonical(made) == state:
                route += steps
                actual = made
                break
    for steps, made in space.moves(actual):
        if isinstance(made, Violation) and made.name == violation.name:
            return [*route, *steps]
    raise AssertionError("no step leads to the next state")

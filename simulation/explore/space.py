"""The states of a cluster and the steps between them.

A state consists of the number of each node's state, the packets under way, the rest of each budget,
and the history. A step looks up the outcome of an event for one node (``local``), moves packets,
and runs the checks.

These cases are left out because they change nothing that is checked; ``DESIGN.md`` has the
arguments:

* A held Fetch whose time is over: its empty answer leads back to the same state.
* An answer to a request that its sender has given up: the core drops it by its id.
* A delayed answer: it comes at once, or never and the request is sent again.
* Where refusals are lost, a request of an epoch below its receiver's, after it was refused. Up to
  ``Model.stale`` late ones stay, and every later state must refuse them too.
* A process that is down for a while: all its messages come late.
* The time at which a disk completes: at once, unless the node crashes before.
* A crash that leaves a node as it was before the event, or as it is after it without a crash.
* The names of nodes with the same initial state.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from quorum.types import Epoch
from simulation.explore.history import History, after_step, pruned
from simulation.explore.local import Locals
from simulation.explore.model import Model
from simulation.explore.symmetry import Images, namings_of
from simulation.explore.under_way import UnderWay
from simulation.explore.values import Event, Local, Outcome
from simulation.invariants.violation import Violation


class Budget(NamedTuple):
    """What may still happen."""

    records: int
    removals: int


class State(NamedTuple):
    """One state of the cluster. Compares by content; its hash is fast."""

    locals: tuple[int, ...]
    packets: tuple[int, ...]
    """Ascending."""
    budget: Budget
    history: int


class Step(NamedTuple):
    """An event, and the node it happens to."""

    node: int
    event: Event
    packet: int = -1
    """The packet that is delivered or lost; -1 for none."""


Route: TypeAlias = tuple[Step, ...]
"""A step, and its immediate consequences."""


class Space:
    """All states of one model, created on demand."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.table = Locals(model)
        self.under_way = UnderWay(model, self.table)
        self.ids = tuple(sorted(model.disks()))
        self._index = {node_id: index for index, node_id in enumerate(self.ids)}
        namings = list(namings_of(model))[1:]
        self.images = [Images(self.table, each, model.disks()) for each in namings]
        self.histories: list[History] = []
        self._by_history: dict[History, int] = {}
        self._by_floor: dict[tuple[int, Epoch], int] = {}

    def first(self) -> State:
        """Return the state in which every node has just started on its disk."""
        model, disks = self.model, self.model.disks()
        outcomes = [self.table.opened(node_id, disks[node_id]) for node_id in self.ids]
        numbers = tuple(each.local for each in outcomes)
        nodes = [self.table.locals[number] for number in numbers]
        history = History()
        for node in sorted(nodes, key=lambda each: -each.high_watermark):
            history = after_step(history, None, node, nodes)
        packets = {packet for outcome in outcomes for packet in outcome.sent}
        budget = Budget(model.records, model.removals)
        return State(numbers, tuple(sorted(packets)), budget, self._number_of(history))

    def _number_of(self, history: History) -> int:
        known = self._by_history.get(history)
        if known is None:
            known = self._by_history[history] = len(self.histories)
            self.histories.append(history)
        return known

    def steps(self, state: State) -> Iterator[Step]:
        """Yield every possible next step, always in the same order."""
        urgent = self._urgent(state)
        return self._free(state) if urgent is None else iter(urgent)

    def moves(self, state: State) -> Iterator[tuple[Route, State | Violation]]:
        """Yield every step from ``state`` with its consequences, and the resulting state."""
        for step in self.steps(state):
            yield from self._moved(state, state, (step,))

    def _moved(
        self, begin: State, state: State, route: Route
    ) -> Iterator[tuple[Route, State | Violation]]:
        try:
            made = self.take(state, route[-1])
        except Violation as violation:
            yield route, violation
            return
        if made is None or self._is_idle_crash(begin, state, made, route[-1]):
            return
        urgent = self._urgent(made)
        if urgent is None:
            yield route, made
            return
        for step in urgent:
            yield from self._moved(begin, made, (*route, step))

    def _is_idle_crash(self, begin: State, state: State, made: State, step: Step) -> bool:
        """Return whether a crash leaves a node as it was, or as it is without the crash."""
        table, at = self.table, step.node
        if step.event[0] != "crash" or not table.locals[state.locals[at]].is_urgent:
            return False
        body = table.locals[made.locals[at]].body
        without = table.step(state.locals[at], ("persist",)).local
        return body in (table.locals[begin.locals[at]].body, table.locals[without].body)

    def _urgent(self, state: State) -> list[Step] | None:
        """Return the steps that must come before all others; None for none."""
        table = self.table
        for index, number in enumerate(state.locals):
            node = table.locals[number]
            if node.is_urgent:
                return [Step(index, event) for event in node.events]
        if self.model.in_full:
            return None
        for number in state.packets:
            packet = table.packets[number]
            if not packet.is_request:
                index = self._index[packet.to]
                return [
                    Step(index, ("deliver", number), number),
                    Step(index, ("again", packet.sender, packet.number), number),
                ]
        return None

    def _free(self, state: State) -> Iterator[Step]:
        table, budget = self.table, state.budget
        nodes = [table.locals[number] for number in state.locals]
        for number in state.packets:
            packet = table.packets[number]
            index = self._index[packet.to]
            if not self.under_way.is_ignored(number, state.locals[index]):
                yield Step(index, ("deliver", number), number)
            if not packet.is_request:
                yield Step(index, ("again", packet.sender, packet.number), number)
        for index, node in enumerate(nodes):
            yield from self._steps_of(nodes, index, node, budget)

    def _steps_of(
        self, nodes: list[Local], index: int, node: Local, budget: Budget
    ) -> Iterator[Step]:
        """Yield the steps of one node that need no message."""
        for event in node.events:
            yield Step(index, event)
        if node.can_write and budget.records:
            yield Step(index, ("propose",))
        if node.leads and budget.removals:
            for target in self.model.removable:
                yield Step(index, ("remove", target))
        for target in node.begins if self.model.has_refusals else ():
            other = nodes[self._index[target]]
            is_following = other.follows == node.node_id and other.epoch == node.epoch
            if not is_following and other.epoch <= node.epoch:
                yield Step(index, ("begin", target))

    def canonical(self, state: State) -> State:
        """Return the representative of all renamings of alike nodes in ``state``."""
        numbers = best = state.locals
        ties: list[Images] = []
        for images in self.images:
            image = images.of_locals(numbers)
            if image < best:
                best, ties = image, [images]
            elif image == best:
                ties.append(images)
        if not ties:
            return state
        found = [self._renamed(state, best, images) for images in ties]
        return min([state, *found] if best == numbers else found)

    def _renamed(self, state: State, numbers: tuple[int, ...], images: Images) -> State:
        packets = tuple(sorted(map(images.of_packet, state.packets)))
        at = images.histories.get(state.history)
        if at is None:
            at = self._number_of(images.of_history(self.histories[state.history]))
            images.histories[state.history] = at
        return State(numbers, packets, state.budget, at)

    def take(self, state: State, step: Step) -> State | None:
        """Return the state after ``step``; None where nothing changes.

        Raises:
            Violation: The step breaks a property.
        """
        table, index, event = self.table, step.node, step.event
        number = state.locals[index]
        outcome = table.step(number, event)
        if outcome.violation is not None:
            raise outcome.violation
        name, budget = event[0], state.budget
        if name in ("remove", "begin") and outcome.local == number and not outcome.sent:
            return None
        if name == "propose":
            budget = budget._replace(records=budget.records - 1)
        elif name == "remove":
            budget = budget._replace(removals=budget.removals - 1)
        numbers = list(state.locals)
        packets = set(state.packets)
        if step.packet >= 0:
            packets.discard(step.packet)
        history = past = self.histories[state.history]
        queue: list[tuple[int, Outcome]] = [(index, outcome)]
        if name == "crash":
            queue += self._ask_again(numbers, index)
        while queue:
            at, made = queue.pop(0)
            history = self._settle(numbers, packets, history, at, made)
        if name == "deliver":
            self.under_way.keep(numbers, packets, index, step.packet, outcome)
        self.under_way.drop_old(numbers, packets)
        nodes = [table.locals[each] for each in numbers]
        if any(node.is_moot for node in nodes):
            return None
        at = state.history if history is past else self._number_of(history)
        at = self._pruned(at, min([node.durable_epoch for node in nodes]))
        return State(tuple(numbers), tuple(sorted(packets)), budget, at)

    def _pruned(self, number: int, floor: Epoch) -> int:
        known = self._by_floor.get((number, floor))
        if known is None:
            known = self._number_of(pruned(self.histories[number], floor, self.model.epochs))
            self._by_floor[number, floor] = known
        return known

    def _ask_again(self, numbers: list[int], index: int) -> list[tuple[int, Outcome]]:
        """Let the nodes that wait for an answer of the crashed node send their requests again."""
        crashed = self.table.locals[numbers[index]]
        found = []
        for peer, number in sorted(crashed.owed):
            at = self._index[peer]
            if number in self.table.locals[numbers[at]].waits:
                event = ("again", crashed.node_id, number)
                found.append((at, self.table.step(numbers[at], event)))
        return found

    def _settle(
        self,
        numbers: list[int],
        packets: set[int],
        history: History,
        index: int,
        outcome: Outcome,
    ) -> History:
        """Replace a node's state, with all consequences for the other nodes."""
        table = self.table
        if outcome.violation is not None:
            raise outcome.violation
        before = table.locals[numbers[index]]
        numbers[index] = outcome.local
        now = table.locals[outcome.local]
        if outcome.killed:
            self.under_way.give_up(numbers, packets, index, outcome.killed)
        packets.update(outcome.sent)
        if now is before:
            return history
        return after_step(history, before, now, [table.locals[each] for each in numbers])

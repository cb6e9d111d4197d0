"""The states of a cluster and the steps between them.

A state is the number of each node's state, the packets under way, what is left of each budget, and
the history. Steps look up what an event makes of one node (``local``), move packets, and check.

What is left out, because it changes nothing that is checked:

* A held Fetch whose time is over: its empty answer leads back to the same state.
* A request sent again because no answer came: it says what the first one says, so the first one
  came late. The exception are Fetches, see ``Model.lost``.
* An answer to a request that its sender has given up: the core drops it by its id.
* A request that its receiver is bound by its disk to refuse, where refusals are lost.
* A process that is down for a while: everything for it comes late.
* A crash of a node whose disk has done everything handed to it. It loses what a node forgets that
  goes silent in its role: its tally, its reign, its Fetch. And it may know less of what is
  committed, which nothing but a cut below that would notice, and such a cut is a violation.
* The time at which a disk is done that loses nothing any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from quorate.sim.explore import slots
from quorate.sim.explore.history import History, after_step
from quorate.sim.explore.local import Locals
from quorate.sim.explore.model import Model
from quorate.sim.explore.values import Event, Local, Outcome


class Budget(NamedTuple):
    """What may still happen."""

    records: int
    removals: int
    copies: int
    lost: int


class State(NamedTuple):
    """One state of the cluster. Compares by content, and hashes fast."""

    locals: tuple[int, ...]
    packets: tuple[int, ...]
    """Ascending."""
    budget: Budget
    history: int


class Step(NamedTuple):
    """What happens: an event, the node it happens to, and whether a copy stays under way."""

    node: int
    event: Event
    packet: int = -1
    keeps_copy: bool = False


class Space:
    """All states of one model, made as they are asked for."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.table = Locals(model)
        self.ids = tuple(sorted(model.disks()))
        self._index = {node_id: index for index, node_id in enumerate(self.ids)}
        self._alike = [[self._index[each] for each in group] for group in model.alike]
        self._starts: tuple[int, ...] = ()
        self.histories: list[History] = []
        self._by_history: dict[History, int] = {}

    def first(self) -> State:
        """Every node has just started on its disk."""
        model, disks = self.model, self.model.disks()
        outcomes = [self.table.opened(node_id, disks[node_id]) for node_id in self.ids]
        numbers = self._starts = tuple(each.local for each in outcomes)
        nodes = [self.table.locals[number] for number in numbers]
        history = History()
        for node in sorted(nodes, key=lambda each: -each.high_watermark):
            history = after_step(history, None, node, nodes)
        packets = {packet for outcome in outcomes for packet in outcome.sent}
        budget = Budget(model.records, model.removals, model.copies, model.lost)
        return State(numbers, tuple(sorted(packets)), budget, self._number_of(history))

    def _number_of(self, history: History) -> int:
        known = self._by_history.get(history)
        if known is None:
            known = self._by_history[history] = len(self.histories)
            self.histories.append(history)
        return known

    def steps(self, state: State) -> Iterator[Step]:
        """Everything that may happen next, always in the same order."""
        table, budget = self.table, state.budget
        nodes = [table.locals[number] for number in state.locals]
        idle = self._idle(state.locals)
        for number in state.packets:
            packet = table.packets[number]
            index = self._index[packet.to]
            if index in idle:
                continue
            event = ("deliver", number)
            yield Step(index, event, number)
            if packet.is_request and packet.number and budget.copies:
                yield Step(index, event, number, keeps_copy=True)
        for index, node in enumerate(nodes):
            if index not in idle:
                yield from self._steps_of(nodes, index, node, budget)

    def _steps_of(
        self, nodes: list[Local], index: int, node: Local, budget: Budget
    ) -> Iterator[Step]:
        """What may happen to one node without a message."""
        for event in node.events:
            yield Step(index, event)
        if node.can_write and budget.records:
            yield Step(index, ("propose",))
        if node.leads and budget.removals:
            for target in self.model.removable:
                yield Step(index, ("remove", target))
        for target in node.begins:
            other = nodes[self._index[target]]
            is_following = other.follows == node.node_id and other.epoch == node.epoch
            if not is_following and other.epoch <= node.epoch:
                yield Step(index, ("begin", target))
        if budget.lost and slots.FETCH in node.waits and node.follows >= 0:
            yield Step(index, ("refetch",))

    def _idle(self, numbers: tuple[int, ...]) -> set[int]:
        """Nodes that need not act yet: they are as they were at first, and so is one like them."""
        found: set[int] = set()
        for group in self._alike:
            fresh = [at for at in group if numbers[at] == self._starts[at]]
            found.update(fresh[1:])
        return found

    def take(self, state: State, step: Step) -> State | None:
        """The state after ``step``; None where nothing happens at all.

        Raises:
            Violation: The step shows that a property does not hold.
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
        elif name == "refetch":
            budget = budget._replace(lost=budget.lost - 1)
        elif step.keeps_copy:
            budget = budget._replace(copies=budget.copies - 1)
        numbers = list(state.locals)
        packets = set(state.packets)
        if step.packet >= 0:
            packets.discard(step.packet)
            if step.keeps_copy:
                packets.add(table.dead_twin(step.packet))
        history = self.histories[state.history]
        queue: list[tuple[int, Outcome]] = [(index, outcome)]
        if name == "crash":
            queue += self._ask_again(numbers, index)
        while queue:
            at, made = queue.pop(0)
            history = self._settle(numbers, packets, history, at, made)
        self._drop_old(numbers, packets)
        known = self.histories[state.history]
        at = state.history if history is known else self._number_of(history)
        return State(tuple(numbers), tuple(sorted(packets)), budget, at)

    def _ask_again(self, numbers: list[int], index: int) -> list[tuple[int, Outcome]]:
        """Those whose requests the crashed node would have answered notice, and ask again."""
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
        """Put a node's new state in place, with all that follows for the others."""
        table = self.table
        if outcome.violation is not None:
            raise outcome.violation
        before = table.locals[numbers[index]]
        numbers[index] = outcome.local
        now = table.locals[outcome.local]
        if outcome.killed:
            self._give_up(numbers, packets, index, outcome.killed)
        packets.update(outcome.sent)
        if now is before:
            return history
        return after_step(history, before, now, [table.locals[each] for each in numbers])

    def _give_up(
        self, numbers: list[int], packets: set[int], index: int, killed: frozenset[int]
    ) -> None:
        """A node waits no longer for some answers: their requests are late from now on."""
        table, node_id = self.table, self.ids[index]
        for number in sorted(packets):
            packet = table.packets[number]
            if packet.number not in killed:
                continue
            if packet.is_request and packet.sender == node_id:
                packets.discard(number)
                packets.add(table.dead_twin(number))
            elif not packet.is_request and packet.to == node_id:
                packets.discard(number)
        gone = frozenset((node_id, number) for number in killed)
        for other, number in enumerate(numbers):
            if table.locals[number].owed & gone:
                event = ("forget", node_id, killed)
                numbers[other] = table.step(number, event).local

    def _drop_old(self, numbers: list[int], packets: set[int]) -> None:
        """Requests that can do nothing any more, and late ones beyond the bound."""
        table, late = self.table, 0
        has_refusals = self.model.has_refusals
        for number in sorted(packets):
            packet = table.packets[number]
            if not packet.is_request or (packet.number and has_refusals):
                continue
            to = table.locals[numbers[self._index[packet.to]]]
            if packet.epoch < 0 or packet.is_in_vain(to):
                packets.discard(number)
                continue
            late += packet.is_late
            if packet.is_late and late > self.model.late:
                packets.discard(number)

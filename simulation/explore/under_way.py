"""Messages under way: which are kept, given up, or can have no effect any more.

A request is under way from the moment its sender waits for the answer until the sender stops
waiting or the receiver owes an answer: a lost request is sent again. So the messages under way
follow from the states of the nodes, up to ``Model.late`` requests of former roles.
"""

from __future__ import annotations

from simulation.explore.local import Locals
from simulation.explore.model import Model
from simulation.explore.values import Outcome
from simulation.invariants.violation import Violation


class UnderWay:
    """The rules, over a table of states and packets. Lists of states are changed in place."""

    def __init__(self, model: Model, table: Locals) -> None:
        self._model = model
        self._table = table
        self._ids = tuple(sorted(model.disks()))
        self._index = {node_id: index for index, node_id in enumerate(self._ids)}
        self._refused_known: dict[tuple[int, int], bool] = {}
        self._ignored: dict[tuple[int, int], bool] = {}

    def keep(
        self,
        numbers: list[int],
        packets: set[int],
        index: int,
        number: int,
        outcome: Outcome,
    ) -> None:
        """Keep a request that had no effect: its sender still waits and sends it again."""
        table = self._table
        packet = table.packets[number]
        if not packet.is_request or packet.is_late:
            return
        if packet.number:
            asker = (packet.sender, packet.number)
            sender = table.locals[numbers[self._index[packet.sender]]]
            if packet.number not in sender.waits or asker in table.locals[numbers[index]].owed:
                return
            if any(
                (packet.sender, packet.number) == (answer.to, answer.number)
                for answer in map(table.packets.__getitem__, outcome.sent)
                if not answer.is_request
            ):
                return
        packets.add(number)

    def give_up(
        self, numbers: list[int], packets: set[int], index: int, killed: frozenset[int]
    ) -> None:
        """Mark the requests as late whose answers a node no longer waits for."""
        table, node_id = self._table, self._ids[index]
        for number in sorted(packets):
            packet = table.packets[number]
            if packet.number not in killed:
                continue
            if packet.is_request and packet.sender == node_id:
                packets.discard(number)
                packets.add(table.late_copy(number))
            elif not packet.is_request and packet.to == node_id:
                packets.discard(number)
        gone = frozenset((node_id, number) for number in killed)
        for other, number in enumerate(numbers):
            if table.locals[number].owed & gone:
                event = ("forget", node_id, killed)
                numbers[other] = table.step(number, event).local

    def drop_old(self, numbers: list[int], packets: set[int]) -> None:
        """Drop requests that can have no effect any more, and late ones beyond the bounds.

        Of the first kind ``Model.stale`` stay. While their sender waits they can have no effect
        either; they stay in the form they have once it stops waiting.
        """
        table, model, late = self._table, self._model, 0
        refused: set[int] = set()
        for number in sorted(packets):
            packet = table.packets[number]
            if not packet.is_request or (packet.number and model.has_refusals):
                continue
            at = numbers[self._index[packet.to]]
            if not self._is_always_refused(number, at):
                late += packet.is_late
                if packet.is_late and late > model.late:
                    packets.discard(number)
                continue
            packets.discard(number)
            if model.stale:
                copy = table.late_copy(number) if packet.number else number
                if self._is_always_refused(copy, at) and table.packets[copy].epoch >= 0:
                    refused.add(copy)
        packets.update(sorted(refused)[: model.stale])

    def _is_always_refused(self, number: int, local: int) -> bool:
        known = self._refused_known.get((number, local))
        if known is None:
            known = self._can_only_be_refused(number, local)
            self._refused_known[number, local] = known
        return known

    def is_ignored(self, number: int, local: int) -> bool:
        """Return whether a request changes nothing now and gets no answer, so that it stays."""
        known = self._ignored.get((number, local))
        if known is None:
            packet = self._table.packets[number]
            known = packet.is_request and not packet.is_late
            if self._refused_known.get((number, local), False):
                # It was refused before and left no effect.
                known = True
            elif known:
                outcome = self._table.step(local, ("deliver", number))
                known = outcome.violation is None and outcome.local == local and not outcome.sent
            self._ignored[number, local] = known
        return known

    def _can_only_be_refused(self, number: int, local: int) -> bool:
        """Return whether a request's epoch is below its receiver's durable epoch."""
        packet, to = self._table.packets[number], self._table.locals[local]
        if packet.epoch < 0:
            return True
        if packet.epoch >= to.durable_epoch:
            return False
        outcome = self._table.step(local, ("deliver", number))
        if outcome.violation is not None:
            raise outcome.violation
        if outcome.local != local or outcome.sent:
            raise Violation(
                "stale-epoch",
                "a request of an earlier epoch is not refused",
                node=to.node_id,
                epoch=packet.epoch,
                durable=to.durable_epoch,
            )
        return True

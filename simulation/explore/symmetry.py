"""Map states that differ only in node names to one form.

Nodes with the same initial state may be exchanged: renaming commutes with every step. Nothing here
knows the contents of a core. The table remembers how a state of a node was first reached; its image
is the outcome of the renamed events in the production core.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import permutations, product
from operator import itemgetter
from typing import TypeAlias

from quorum.types import NO_NODE, ElectionState, NodeId
from simulation.explore import slots
from simulation.explore.history import History
from simulation.explore.local import Locals, Origin
from simulation.explore.model import Model, key_of
from simulation.explore.values import Event, Outcome
from simulation.harness.core_disk import Disk, Log

Naming: TypeAlias = dict[NodeId, NodeId]
"""A new name for every node."""


def namings_of(model: Model) -> Iterator[Naming]:
    """Yield every renaming that a model's nodes admit, first the identity."""
    ids = sorted(model.disks())
    for orders in product(*(permutations(group) for group in model.alike)):
        naming = {node_id: node_id for node_id in ids}
        for group, order in zip(model.alike, orders):
            naming.update(zip(group, order))
        yield naming


class Images:
    """The images of nodes' states, packets and histories under one naming."""

    def __init__(self, table: Locals, naming: Naming, disks: Mapping[NodeId, Disk]) -> None:
        self._table = table
        self._disks = disks
        self._naming = naming
        self._locals: dict[int, int] = {}
        self._packets: dict[int, int] = {}
        self.histories: dict[int, int] = {}
        """Numbers of the renamed histories, by number."""
        ids = sorted(naming)
        former = {new: old for old, new in naming.items()}
        # The old index of the node at each new index.
        self._moved = itemgetter(*(ids.index(former[each]) for each in ids))

    def of_locals(self, numbers: tuple[int, ...]) -> tuple[int, ...]:
        """Return the renamed nodes, in the order of their new names."""
        moved = self._moved(numbers)
        try:
            return tuple(map(self._locals.__getitem__, moved))
        except KeyError:
            return tuple(map(self.of_local, moved))

    def of_local(self, number: int) -> int:
        """Return the renamed state of a node."""
        image = self._locals.get(number)
        if image is None:
            table = self._table
            image = self._locals[number] = self._again(table.origins[number]).local
        return image

    def _again(self, origin: Origin) -> Outcome:
        before, event = origin
        if before >= 0:
            return self._table.step(self.of_local(before), self.of_event(event))
        return self._table.opened(self._naming[event[1]], self._disks[self._naming[event[1]]])

    def of_packet(self, number: int) -> int:
        """Return the renamed message."""
        image = self._packets.get(number)
        if image is None:
            table, naming = self._table, self._naming
            packet = table.packets[number]
            wanted = (
                naming[packet.sender],
                naming[packet.to],
                type(packet.message),
                self._of_slot(packet.number),
            )
            origin, count = table.sources[number]
            if origin[1] == ("late copy",):
                image = table.late_copy(self.of_packet(origin[0]))
            else:
                sent = self._again(origin).sent
                image = [each for each in sent if table.packets[each].outline == wanted][count]
            self._packets[number] = image
        return image

    def of_event(self, event: Event) -> Event:
        """Return the renamed event."""
        naming = self._naming
        match event:
            case ("deliver", number):
                return ("deliver", self.of_packet(number))
            case ("remove" | "begin" as name, target):
                return (name, naming[target])
            case ("again", peer, number):
                return ("again", naming[peer], self._of_slot(number))
            case ("forget", peer, numbers):
                return ("forget", naming[peer], frozenset(map(self._of_slot, numbers)))
            case ("crash", log, election, watermark):
                return ("crash", self.of_log(log), self._of_election(election), watermark)
        return event

    def of_history(self, history: History) -> History:
        """Return the renamed history."""
        leaders = tuple((epoch, self._naming[leader]) for epoch, leader in history.leaders)
        return History(self.of_log(history.committed), history.commits, leaders)

    def of_log(self, log: Log) -> Log:
        """Return the renamed records."""
        return tuple(
            entry
            if entry[1] is None
            else (
                entry[0],
                (
                    tuple(
                        sorted(
                            (
                                replace(each, key=key_of(self._naming[each.key.id]))
                                for each in entry[1][0]
                            ),
                            key=lambda each: each.key.id,
                        )
                    ),
                    tuple(
                        sorted(
                            (key_of(self._naming[each.id]) for each in entry[1][1]),
                            key=lambda key: key.id,
                        )
                    ),
                    entry[1][2],
                ),
            )
            for entry in log
        )

    def _of_election(self, state: ElectionState) -> ElectionState:
        leader = state.leader_id
        return replace(
            state,
            leader_id=leader if leader == NO_NODE else self._naming[leader],
            voted=None if state.voted is None else key_of(self._naming[state.voted.id]),
        )

    def _of_slot(self, number: int) -> int:
        peer = number % slots.PEERS
        if number < slots.PEERS or peer == 0:
            return number
        return number - peer + self._naming[peer]

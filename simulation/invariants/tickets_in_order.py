"""The writer gets every ticket after all earlier ones (quorum/runtime/DESIGN.md, invariant 1).

A completion reports the last ticket of a pass, and all before it then count as durable. A group
that comes later than a higher ticket would let a promise leave before its state is written.
"""

from __future__ import annotations

from quorum.runtime.ports import WriteGroup
from simulation.invariants.invariant import Invariant
from simulation.invariants.seen import Seen


class TicketsInOrder(Invariant):
    """Tickets of one process rise."""

    name = "tickets-in-order"

    def on_submitted(self, seen: Seen, group: WriteGroup) -> None:
        if group.ticket <= seen.ticket:
            self.fail(
                "the writer got a ticket after a later one",
                node=seen.id,
                ticket=group.ticket,
                later=seen.ticket,
            )
        seen.ticket = group.ticket

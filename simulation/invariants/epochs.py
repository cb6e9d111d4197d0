"""Epochs stay in the range that a message can carry (docs/reference/protocol.md)."""

from __future__ import annotations

from simulation.invariants.invariant import Invariant
from simulation.invariants.seen import Seen

EPOCH_LAST = 2**31 - 2
"""Epochs have 31 bits. The largest value is not used, because no campaign could follow it."""


class Epochs(Invariant):
    """No node adopts an epoch that is negative or above the last one."""

    name = "epochs"

    def on_stepped(self, seen: Seen) -> None:
        epoch = seen.replica.node.epoch
        if not 0 <= epoch <= EPOCH_LAST:
            self.fail("an epoch outside the range of messages", node=seen.id, epoch=epoch)

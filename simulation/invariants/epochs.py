"""Epochs have an end: what a message can name (docs/reference/protocol.md)."""

from __future__ import annotations

from simulation.invariants.invariant import Invariant
from simulation.invariants.seen import Seen

EPOCH_LAST = 2**31 - 2
"""An epoch is 31 bits, of which the highest is kept free: no campaign can follow it."""


class Epochs(Invariant):
    """No node adopts an epoch after the last one, or below none."""

    name = "epochs"

    def on_stepped(self, seen: Seen) -> None:
        epoch = seen.replica.node.epoch
        if not 0 <= epoch <= EPOCH_LAST:
            self.fail("an epoch that no message can name", node=seen.id, epoch=epoch)

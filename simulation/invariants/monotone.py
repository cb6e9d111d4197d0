"""Epochs and positions of a node never decrease (279.4, Raft figure 2)."""

from __future__ import annotations

from quorum.types import ElectionState, ReplicaKey
from simulation.invariants.invariant import Invariant
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import Seen


class Monotone(Invariant):
    """Epoch, high watermark and applied end never decrease within one incarnation.

    The durable epoch never decreases at all.
    """

    name = "monotone"

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self._durable: dict[tuple[ReplicaKey, int], int] = {}

    def on_stepped(self, seen: Seen) -> None:
        node = seen.replica.node
        applied = seen.replica.controller.image.provenance.end_offset
        if (
            node.epoch < seen.epoch
            or node.high_watermark < seen.high_watermark
            or applied < seen.applied_end
        ):
            self.fail(
                "an epoch or position decreased",
                node=seen.id,
                epoch=(seen.epoch, node.epoch),
                high_watermark=(seen.high_watermark, node.high_watermark),
                applied=(seen.applied_end, applied),
            )

    def on_voted(self, seen: Seen, state: ElectionState) -> None:
        disk = (seen.replica.key, self.run_observer.disks.get(seen.id, 0))
        durable = self._durable.get(disk, 0)
        self.require(
            state.epoch >= durable,
            "the durable epoch decreased",
            node=seen.id,
            before=durable,
            after=state.epoch,
        )
        self._durable[disk] = state.epoch

"""What is set aside as damaged was damaged (ADR 7; 630.14)."""

from __future__ import annotations

from simulation.invariants.invariant import Invariant
from simulation.invariants.seen import Seen


class DamageImagined(Invariant):
    """A start sets nothing aside unless rot, or a script, has taken something from a disk.

    A crash leaves torn tails and names that came back; none of that is damage.
    """

    name = "damage-imagined"

    def on_opened(self, seen: Seen, before: Seen | None) -> None:
        witness = self.witness
        report = seen.replica.stores.report
        is_excused = (
            before is None
            or seen.damaged_at is not None
            or witness.is_chain_damaged
            or bool(witness.forged)
        )
        self.require(
            is_excused or not (report.losses or report.corrupt_snapshots),
            "set aside as damaged, and nothing was",
            node=seen.id,
            losses=[str(damage) for damage, _ in report.losses],
            checkpoints=report.corrupt_snapshots,
        )

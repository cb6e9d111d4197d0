"""Only damaged files are quarantined (ADR 7; 630.14)."""

from __future__ import annotations

from simulation.invariants.invariant import Invariant
from simulation.invariants.seen import Seen


class DamageImagined(Invariant):
    """A start quarantines a file only if corruption, or a script, has damaged the disk.

    A crash leaves torn tails and files whose removal was not synced; that is not damage.
    """

    name = "damage-imagined"

    def on_opened(self, seen: Seen, before: Seen | None) -> None:
        run_observer = self.run_observer
        report = seen.replica.stores.report
        is_excused = (
            before is None
            or seen.damaged_at is not None
            or run_observer.is_chain_damaged
            or bool(run_observer.forged)
        )
        self.require(
            is_excused or not (report.losses or report.corrupt_snapshots),
            "an intact file was quarantined",
            node=seen.id,
            losses=[str(damage) for damage, _ in report.losses],
            checkpoints=report.corrupt_snapshots,
        )

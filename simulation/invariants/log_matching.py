"""Equal offset and epoch means equal prefix (Raft, Log Matching)."""

from __future__ import annotations

from simulation.invariants.invariant import Invariant
from simulation.invariants.mirror import Batch
from simulation.invariants.seen import Seen


class LogMatching(Invariant):
    """A batch that ends at (offset, epoch) has the same bytes and prefix on all nodes."""

    name = "log-matching"

    def on_appended(self, seen: Seen, batches: list[Batch]) -> None:
        known = self.run_observer.positions
        log = seen.written
        for batch in batches:
            if known[batch.end_offset, batch.epoch] != log.chain_at(batch.end_offset):
                self.fail(
                    "two histories end at one position",
                    node=seen.id,
                    end_offset=batch.end_offset,
                    epoch=batch.epoch,
                )

    def on_opened(self, seen: Seen, before: Seen | None) -> None:
        log = seen.written
        for end_offset, epoch, chain in zip(log.ends, log.epochs, log.chains):
            if self.run_observer.positions.get((end_offset, epoch)) != chain:
                self.fail(
                    "records on disk were never written",
                    node=seen.id,
                    end_offset=end_offset,
                    epoch=epoch,
                )

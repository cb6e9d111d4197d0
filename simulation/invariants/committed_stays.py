"""Committed records stay, and are the same on all nodes (Raft, State Machine Safety; 279.4)."""

from __future__ import annotations

from simulation.invariants.invariant import Invariant
from simulation.invariants.mirror import Batch, Truncation
from simulation.invariants.seen import Seen


class CommittedStays(Invariant):
    """All nodes that report an offset as committed hold the same records below it."""

    name = "committed-stays"

    def on_stepped(self, seen: Seen) -> None:
        high_watermark = seen.replica.node.high_watermark
        if high_watermark == seen.high_watermark:
            return
        found = seen.written.chain_at(high_watermark)
        expected = self.run_observer.committed.chain_at(high_watermark)
        if not (found is not None and found == expected):
            self.fail(
                "two nodes report different records as committed",
                node=seen.id,
                high_watermark=high_watermark,
            )

    def on_truncated(self, seen: Seen, cut: Truncation) -> None:
        self.require(
            cut.end_offset >= seen.high_watermark,
            "a cut below the high watermark",
            node=seen.id,
            end_offset=cut.end_offset,
            high_watermark=seen.high_watermark,
        )
        committed = self.run_observer.committed
        for end_offset, chain in cut.removed:
            self.require(
                committed.chain_at(end_offset) != chain,
                "committed records were cut off",
                node=seen.id,
                end_offset=end_offset,
                cut=cut.end_offset,
            )

    def on_committed(self, seen: Seen, batches: list[Batch], end_offset: int) -> None:
        epoch = seen.replica.node.epoch
        in_epoch = self.run_observer.committed_in
        before = in_epoch[-2][0] if len(in_epoch) > 1 else 0
        self.require(
            epoch >= before,
            "an older epoch commits after a newer one",
            node=seen.id,
            epoch=epoch,
            newest=before,
            end_offset=end_offset,
        )

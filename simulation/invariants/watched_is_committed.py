"""Watchers receive only records that are committed at that time (KIP-595)."""

from __future__ import annotations

from simulation.invariants.invariant import Invariant
from simulation.invariants.seen import Seen


class WatchedIsCommitted(Invariant):
    """Nothing above the node's own high watermark is delivered, even if it is committed later."""

    name = "watched-is-committed"

    def on_watched(self, seen: Seen, end_offset: int) -> None:
        high_watermark = seen.replica.node.high_watermark
        committed = self.run_observer.committed.end_offset
        if end_offset > high_watermark or end_offset > committed:
            self.fail(
                "a watcher receives records that are not known to be committed",
                node=seen.id,
                end_offset=end_offset,
                high_watermark=high_watermark,
                committed=committed,
            )

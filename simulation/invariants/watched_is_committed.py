"""What watchers are handed is committed already when it leaves the node (KIP-595)."""

from __future__ import annotations

from simulation.invariants.invariant import Invariant
from simulation.invariants.seen import Seen


class WatchedIsCommitted(Invariant):
    """Nothing above the node's own high watermark is handed out, even if it is committed later."""

    name = "watched-is-committed"

    def on_watched(self, seen: Seen, end_offset: int) -> None:
        high_watermark = seen.replica.node.high_watermark
        committed = self.run_observer.committed.end_offset
        if end_offset > high_watermark or end_offset > committed:
            self.fail(
                "a watcher is handed what is not known to be committed",
                node=seen.id,
                end_offset=end_offset,
                high_watermark=high_watermark,
                committed=committed,
            )

"""Every later leader holds every committed record (Raft, Leader Completeness)."""

from __future__ import annotations

from bisect import bisect_left

from quorum.types import NodeId
from simulation.invariants.invariant import Invariant
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import Seen


class LeaderCompleteness(Invariant):
    """A leader's log contains all records that were committed in earlier epochs."""

    name = "leader-completeness"

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.checked: set[tuple[NodeId, int]] = set()

    def on_stepped(self, seen: Seen) -> None:
        node = seen.replica.node
        if not node.is_leader or (seen.id, node.epoch) in self.checked:
            return
        self.checked.add((seen.id, node.epoch))
        committed_in = self.run_observer.committed_in
        at = bisect_left(committed_in, (node.epoch, -1))
        if at == 0:
            return
        end_offset = committed_in[at - 1][1]
        self.require(
            seen.written.chain_at(end_offset) == self.run_observer.committed.chain_at(end_offset),
            "a leader lacks committed records",
            node=seen.id,
            epoch=node.epoch,
            committed=end_offset,
            committed_in=committed_in[at - 1][0],
            log_end=seen.written.end_offset,
        )

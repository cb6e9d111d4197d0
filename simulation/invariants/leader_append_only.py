"""A leader never cuts its log nor replaces it by a checkpoint (Raft 5.3, Leader Append-Only)."""

from __future__ import annotations

from quorum.core.contract.output import Effect, ReplaceLogWith
from simulation.invariants.invariant import Invariant
from simulation.invariants.mirror import Truncation
from simulation.invariants.seen import Seen


class LeaderAppendOnly(Invariant):
    """While it leads, a node's log only grows at its end."""

    name = "leader-append-only"

    def on_truncated(self, seen: Seen, cut: Truncation) -> None:
        self.require(
            not seen.replica.node.is_leader or not cut.removed,
            "a leader cut its log",
            node=seen.id,
            end_offset=cut.end_offset,
            old_end=cut.old_end,
        )

    def on_persisted(self, seen: Seen, effect: Effect) -> None:
        if type(effect) is ReplaceLogWith:
            self.require(
                not seen.replica.node.is_leader,
                "a leader loaded a checkpoint",
                node=seen.id,
                snapshot=effect.snapshot_id,
            )

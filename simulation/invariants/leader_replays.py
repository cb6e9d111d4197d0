"""A node that cannot apply committed records does not lead: it could answer no write."""

from __future__ import annotations

from simulation.invariants.invariant import Invariant
from simulation.invariants.seen import Seen


class LeaderReplays(Invariant):
    """A node whose replay has stopped is not leader after any step."""

    name = "leader-replays"

    def on_stepped(self, seen: Seen) -> None:
        replica = seen.replica
        if replica.controller.fault is not None and replica.node.is_leader:
            self.fail(
                "it leads although its replay has stopped",
                node=seen.id,
                epoch=replica.node.epoch,
                cause=str(replica.controller.fault),
            )

"""A confirmed read sees every write acknowledged before it began (Raft section 8)."""

from __future__ import annotations

from simulation.invariants.invariant import Invariant
from simulation.invariants.seen import ReadBegun, Seen


class ConfirmedReads(Invariant):
    """The confirmed offset covers all acknowledged writes, and nothing uncommitted.

    A command that was refused or changed nothing is a read as well, at the offset of its answer.
    """

    name = "confirmed-reads"

    def on_read(self, seen: Seen, begun: ReadBegun, offset: int) -> None:
        self.require(
            offset >= begun.acknowledged_end,
            "a read would miss an acknowledged write",
            node=seen.id,
            acknowledged=begun.acknowledged_end,
            read_offset=offset,
        )
        self.require(
            offset <= self.run_observer.committed.end_offset,
            "a read would see uncommitted records",
            node=seen.id,
            read_offset=offset,
            committed=self.run_observer.committed.end_offset,
        )

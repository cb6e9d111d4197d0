"""What a disk has completed is found again by the next life (ports, ADR 7)."""

from __future__ import annotations

from quorate.sim.invariants.violation import Invariant
from quorate.sim.invariants.witness import Seen


class DurableSurvives(Invariant):
    """After a crash: the log holds everything flushed, ``quorum-state`` is no older.

    A log may have been cut, or replaced by a checkpoint, in the moment of the crash; then what
    was handed to the disk says so. A damaged disk may lose records, never election state.
    """

    name = "durable-survives"

    def on_opened(self, seen: Seen, before: Seen | None) -> None:
        if before is None:
            return
        self.require(
            (seen.election.epoch, seen.election.voted is not None)
            >= (before.election.epoch, before.election.voted is not None),
            "election state was lost",
            node=seen.id,
            before=before.election,
            found=seen.election,
        )
        if before.damaged_at is not None:
            return
        end_offset = before.durable.end_offset
        kept = seen.written.chain_at(end_offset)
        if kept is not None and kept == before.durable.chain:
            return
        was_replaced = before.written.ends[0] > before.durable.ends[0]
        was_cut = before.written.chain_at(end_offset) != before.durable.chain
        self.require(
            was_replaced or was_cut or seen.written.ends[0] > end_offset,
            "flushed records were lost",
            node=seen.id,
            durable_end=end_offset,
            found_end=seen.written.end_offset,
            found_start=seen.written.ends[0],
        )

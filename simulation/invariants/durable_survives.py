"""The next incarnation finds everything that the disk has completed (ports, ADR 7)."""

from __future__ import annotations

from simulation.invariants.invariant import Invariant
from simulation.invariants.seen import Seen


class DurableSurvives(Invariant):
    """After a crash: the log holds everything flushed, ``quorum-state`` is no older.

    The log may have been cut, or replaced by a checkpoint, at the moment of the crash, if such an
    effect was submitted. A damaged disk may lose records, but never election state, and never
    unnoticed; see ``LossesKnown``.
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
        self.require(
            before.damaged_at is not None or not _has_lost(seen, before),
            "flushed records were lost",
            node=seen.id,
            durable_end=before.durable.end_offset,
            found_end=seen.written.end_offset,
            found_start=seen.written.ends[0],
        )


class LossesKnown(Invariant):
    """A node that lost flushed records to a damaged disk has a vote floor, or is disqualified.

    Otherwise it could help to elect a candidate that lacks the records it had acknowledged. Only
    records above its durable mark may be taken for a torn tail (ADR 26).
    """

    name = "losses-known"

    def on_opened(self, seen: Seen, before: Seen | None) -> None:
        if before is None or not _has_lost(seen, before):
            return
        self.require(
            seen.election.vote_floor is not None
            or seen.election.disqualified
            or seen.written.end_offset >= before.marked_end,
            "records were lost without a vote floor",
            node=seen.id,
            durable_end=before.durable.end_offset,
            found_end=seen.written.end_offset,
        )


def _has_lost(seen: Seen, before: Seen) -> bool:
    """Return whether completed records are gone, and no submitted cut or checkpoint explains it."""
    end_offset = before.durable.end_offset
    kept = seen.written.chain_at(end_offset)
    if kept is not None and kept == before.durable.chain:
        return False
    was_replaced = before.written.ends[0] > before.durable.ends[0]
    was_cut = before.written.chain_at(end_offset) != before.durable.chain
    return not (was_replaced or was_cut or seen.written.ends[0] > end_offset)

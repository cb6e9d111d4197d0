"""What a disk has completed is found again by the next life (ports, ADR 7)."""

from __future__ import annotations

from simulation.invariants.invariant import Invariant
from simulation.invariants.seen import Seen


class DurableSurvives(Invariant):
    """After a crash: the log holds everything flushed, ``quorum-state`` is no older.

    A log may have been cut, or replaced by a checkpoint, in the moment of the crash; then what
    was handed to the disk says so. A damaged disk may lose records, never election state, and
    never in silence: ``LossesKnown``.
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
    """Whoever lost flushed records to a damaged disk knows it: it has a vote floor, or is
    disqualified.

    Without one it would help somebody to be elected who lacks what it had acknowledged. Only what
    lies above its durable mark may look like a torn tail (ADR 26).
    """

    name = "losses-known"

    def on_opened(self, seen: Seen, before: Seen | None) -> None:
        if before is None or not _has_lost(seen, before):
            return
        self.require(
            seen.election.vote_floor is not None
            or seen.election.disqualified
            or seen.written.end_offset >= before.marked_end,
            "records were lost and nothing says so",
            node=seen.id,
            durable_end=before.durable.end_offset,
            found_end=seen.written.end_offset,
        )


def _has_lost(seen: Seen, before: Seen) -> bool:
    """Whether what the former life had completed is gone, and was not to be cut or replaced."""
    end_offset = before.durable.end_offset
    kept = seen.written.chain_at(end_offset)
    if kept is not None and kept == before.durable.chain:
        return False
    was_replaced = before.written.ends[0] > before.durable.ends[0]
    was_cut = before.written.chain_at(end_offset) != before.durable.chain
    return not (was_replaced or was_cut or seen.written.ends[0] > end_offset)

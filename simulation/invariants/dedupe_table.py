"""Every image has the outcome of the commands it contains (ADR 10; requirements 360)."""

from __future__ import annotations

from simulation.invariants.invariant import Invariant
from simulation.invariants.seen import Seen


class DedupeTable(Invariant):
    """The newest command in an image is found under its sequence number, with its end offset.

    Checked whenever an image advances, by replay or by a checkpoint, and after every start.
    """

    name = "dedupe-table"

    def on_stepped(self, seen: Seen) -> None:
        image = seen.replica.controller.image
        if image.provenance.end_offset > seen.applied_end:
            self._check(seen, seen.applied_end)

    def _check(self, seen: Seen, begin: int) -> None:
        image = seen.replica.controller.image
        boundaries = self.run_observer.committed.boundaries_between(
            begin, image.provenance.end_offset
        )
        for boundary in reversed(boundaries):
            batch = self.run_observer.batches[boundary]
            if batch.is_control or batch.producer_id < 0:
                continue
            state = image.producers.states.get(batch.producer_id)
            if state is None or state.epoch != batch.producer_epoch:
                # Expired, or renewed by a later command of the same range.
                continue
            known = state.answer_to(batch.sequence)
            if known is None or known.offset != batch.end_offset:
                self.fail(
                    "an image has no outcome for a command that it contains",
                    node=seen.id,
                    applied=image.provenance.end_offset,
                    producer=(batch.producer_id, batch.producer_epoch, batch.sequence),
                    end_offset=batch.end_offset,
                    known=known,
                )
            return

"""Subscribers of an image receive the committed log, in order (Raft 5.4.3)."""

from __future__ import annotations

from quorate.controller.publishing import Published
from quorum.types import NodeId
from simulation.invariants.invariant import Invariant
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import Seen


class WatchIsPrefix(Invariant):
    """Every step begins at the end of the last one and has exactly the batches committed there.

    A step in which a checkpoint replaces the image names the checkpoint and has no batches, so a
    watcher knows that changes in between were not reported.
    """

    name = "watch-is-prefix"

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.published: dict[NodeId, tuple[Seen, int]] = {}
        """By node: its incarnation, and the end offset of the last step."""

    def on_published(self, seen: Seen, step: Published) -> None:
        incarnation, end = self.published.get(seen.id, (seen, step.base_offset))
        if incarnation is seen and step.base_offset != end:
            self.fail(
                "a gap or a repetition between steps",
                node=seen.id,
                ordered_to=end,
                goes_on_at=step.base_offset,
            )
        self.published[seen.id] = (seen, step.end_offset)
        if step.snapshot_id is not None:
            self.require(not step.data, "a step has records and a checkpoint", node=seen.id)
            return
        self._check_records(seen, step)

    def _check_records(self, seen: Seen, step: Published) -> None:
        committed, offset = self.run_observer.committed, step.base_offset
        for piece in step.data:
            for batch in self.run_observer.split(piece):
                known = self.run_observer.batches.get((batch.end_offset, batch.epoch))
                if not (
                    batch.base_offset == offset
                    and known is not None
                    and known.content == batch.content
                    and committed.chain_at(batch.end_offset) is not None
                ):
                    self.fail(
                        "watchers receive a batch that is not committed there",
                        node=seen.id,
                        end_offset=batch.end_offset,
                        expected_base=offset,
                    )
                offset = batch.end_offset
        if offset != step.end_offset:
            self.fail(
                "the records of a step end before or after it",
                node=seen.id,
                records_end=offset,
                step_end=step.end_offset,
            )

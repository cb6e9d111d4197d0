"""What followers of an image are told is the committed log, in order (Raft 5.4.3)."""

from __future__ import annotations

from quorate.controller.publishing import Published
from quorum.types import NodeId
from simulation.invariants.invariant import Invariant
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import Seen


class WatchIsPrefix(Invariant):
    """Every step begins where the last one ended and carries exactly the batches committed there.

    Where a checkpoint replaces the image, the step says so and carries none: a watcher then
    knows that it was told nothing of what lies between.
    """

    name = "watch-is-prefix"

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.told: dict[NodeId, tuple[Seen, int]] = {}
        """One life, and up to where its watchers were told."""

    def on_published(self, seen: Seen, told: Published) -> None:
        incarnation, end = self.told.get(seen.id, (seen, told.base_offset))
        if incarnation is seen and told.base_offset != end:
            self.fail(
                "a gap or a repetition",
                node=seen.id,
                ordered_to=end,
                goes_on_at=told.base_offset,
            )
        self.told[seen.id] = (seen, told.end_offset)
        if told.snapshot_id is not None:
            self.require(not told.data, "records with a checkpoint", node=seen.id)
            return
        self._check_records(seen, told)

    def _check_records(self, seen: Seen, told: Published) -> None:
        committed, offset = self.run_observer.committed, told.base_offset
        for piece in told.data:
            for batch in self.run_observer.split(piece):
                known = self.run_observer.batches.get((batch.end_offset, batch.epoch))
                if not (
                    batch.base_offset == offset
                    and known is not None
                    and known.content == batch.content
                    and committed.chain_at(batch.end_offset) is not None
                ):
                    self.fail(
                        "watchers are told what is not committed there",
                        node=seen.id,
                        end_offset=batch.end_offset,
                        expected_base=offset,
                    )
                offset = batch.end_offset
        if offset != told.end_offset:
            self.fail(
                "a step that its records do not fill",
                node=seen.id,
                records_end=offset,
                step_end=told.end_offset,
            )

"""Read-process-write happens exactly once: an output is in one batch with its position."""

from __future__ import annotations

from simulation.invariants.contents import metadata_of
from simulation.invariants.invariant import Invariant
from simulation.invariants.mirror import Batch
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import Seen
from statemachine.records import CommittedPositionRecord, ConfigRecord

GROUP = "processor"
"""The group of the simulated programs, and the resource that they write to."""


class ProcessedOnce(Invariant):
    """The outputs in the log are those of the inputs 1, 2, 3 and so on (320.6).

    An output and the position behind its input are in one batch. No output is missing, none comes
    twice, and none is of a process that was replaced.
    """

    name = "processed-once"

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self._checked_end = 0
        self.processed = 0

    def on_committed(self, seen: Seen, batches: list[Batch], end_offset: int) -> None:
        for batch in batches:
            if batch.is_control or batch.end_offset <= self._checked_end:
                continue
            self._checked_end = batch.end_offset
            outputs, positions = [], []
            for record in metadata_of(batch):
                if isinstance(record, ConfigRecord) and record.resource_name == GROUP:
                    outputs.append(int(record.value or -1))
                elif isinstance(record, CommittedPositionRecord):
                    positions.append(record.offset)
            if not outputs and not positions:
                continue
            wanted = [self.processed + 1]
            self.require(
                outputs == positions == wanted,
                "an output is missing, comes twice, or is without its position",
                node=seen.id,
                offset=batch.end_offset,
                producer=(batch.producer_id, batch.producer_epoch),
                outputs=outputs,
                positions=positions,
                wanted=wanted,
            )
            self.processed += 1

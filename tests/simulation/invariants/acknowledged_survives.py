"""Every acknowledged write is committed, once (decision 12; requirements 360)."""

from __future__ import annotations

from tests.simulation.invariants.mirror import Batch
from tests.simulation.invariants.violation import Invariant
from tests.simulation.invariants.witness import Seen, Witness


class AcknowledgedSurvives(Invariant):
    """An answer comes after the commit; no sequence number is committed twice."""

    name = "acknowledged-survives"

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        self.sequences: dict[tuple[int, int, int], int] = {}

    def on_committed(self, seen: Seen, batches: list[Batch], end_offset: int) -> None:
        for batch in batches:
            if batch.producer_id < 0 or batch.is_control:
                continue
            key = (batch.producer_id, batch.producer_epoch, batch.sequence)
            first = self.sequences.setdefault(key, batch.end_offset)
            self.require(first == batch.end_offset, "one command was applied twice",
                         producer=key, first=first, second=batch.end_offset)

    def on_acknowledged(self, seen: Seen, offset: int) -> None:
        self.require(self.witness.committed.chain_at(offset) is not None,
                     "a write was acknowledged that is not committed",
                     node=seen.id, offset=offset, committed=self.witness.committed.end_offset)

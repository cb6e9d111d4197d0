"""Every acknowledged write is committed, once (ADR 10; requirements 360)."""

from __future__ import annotations

from simulation.invariants.invariant import Invariant
from simulation.invariants.mirror import Batch
from simulation.invariants.seen import CommandKey, Seen
from statemachine.commands import Command


class AcknowledgedSurvives(Invariant):
    """A write is acknowledged after its commit; no sequence number is committed twice."""

    name = "acknowledged-survives"

    def on_committed(self, seen: Seen, batches: list[Batch], end_offset: int) -> None:
        for batch in batches:
            if batch.producer_id < 0 or batch.is_control:
                continue
            key = (batch.producer_id, batch.producer_epoch, batch.sequence)
            first = self.run_observer.sequences.setdefault(key, batch.end_offset)
            self.require(
                first == batch.end_offset,
                "one command was applied twice",
                producer=key,
                first=first,
                second=batch.end_offset,
            )

    def on_acknowledged(
        self, seen: Seen, offset: int, key: CommandKey, content: Command | None
    ) -> None:
        run_observer = self.run_observer
        self.require(
            run_observer.committed.chain_at(offset) is not None,
            "an acknowledged write is not committed",
            node=seen.id,
            offset=offset,
            committed=run_observer.committed.end_offset,
        )
        if key is not None:
            found = run_observer.sequences.get(key)
            self.require(
                found == offset,
                "the answer names another offset than the log",
                node=seen.id,
                command=key,
                offset=offset,
                found=found,
            )

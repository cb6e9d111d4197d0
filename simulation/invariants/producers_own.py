"""Answers to a producer concern its own commands, evaluated in their order (ADR 42)."""

from __future__ import annotations

from simulation.invariants.contents import metadata_of, records_of
from simulation.invariants.invariant import Invariant
from simulation.invariants.mirror import Batch
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import CommandKey, Seen
from statemachine.codec import batch_headers
from statemachine.commands import Command, IncrementalAlterConfigs
from statemachine.producers import HEADER_OPEN
from statemachine.records import ConfigRecord


class OwnContent(Invariant):
    """At the offset of an acknowledged config change, the log has that change."""

    name = "own-content"

    def on_acknowledged(
        self, seen: Seen, offset: int, key: CommandKey, content: Command | None
    ) -> None:
        if not isinstance(content, IncrementalAlterConfigs):
            return
        wanted = [
            (content.resource_type, content.resource_name, change.name, change.value)
            for change in content.changes
        ]
        (boundary,) = self.run_observer.committed.boundaries_between(offset - 1, offset) or (None,)
        batch = self.run_observer.batches[boundary] if boundary is not None else None
        found = [
            (each.resource_type, each.resource_name, each.name, each.value)
            for each in (metadata_of(batch) if batch is not None else ())
            if isinstance(each, ConfigRecord)
        ]
        self.require(
            found == wanted,
            "the acknowledged offset holds another command",
            node=seen.id,
            offset=offset,
            wanted=wanted,
            found=found,
        )


class EvaluatedInOrder(Invariant):
    """A command is written only after every earlier open one has reached some node (360.7).

    A sequence number at or below an applied one is not open any more: a stranger that uses the
    producer may have skipped it.
    """

    name = "evaluated-in-order"

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self._checked_end = 0
        self._applied: dict[tuple[int, int], int] = {}

    def on_committed(self, seen: Seen, batches: list[Batch], end_offset: int) -> None:
        for batch in batches:
            if batch.producer_id < 0 or batch.is_control or batch.end_offset <= self._checked_end:
                continue
            self._checked_end = batch.end_offset
            producer = (batch.producer_id, batch.producer_epoch)
            applied = self._applied.get(producer, -1)
            self._applied[producer] = max(applied, batch.sequence)
            first = records_of(batch)[0]
            oldest_open = dict(batch_headers(first.headers, first.value)).get(HEADER_OPEN)
            if oldest_open is None:
                continue
            for sequence in range(max(int(oldest_open), applied + 1), batch.sequence):
                key = (batch.producer_id, batch.producer_epoch, sequence)
                if key not in self.run_observer.asked:
                    self.fail(
                        "a command was written before an older one had reached any node",
                        node=seen.id,
                        written=batch.sequence,
                        missing=key,
                    )

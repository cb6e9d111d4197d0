"""Sequence numbers that this leader has evaluated and that no batch took.

A refusal or a command that changes nothing takes no number. The commands behind it must not wait
for it, so the leader remembers it until it no longer leads. A leader that does not know such a
number refuses later ones. The client repeats them once it no longer waits for that number. So a
forgotten number costs a pause and nothing else.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from statemachine.producers import SequenceClaim
from statemachine.sections.producers import PRODUCER_WINDOW

PRODUCERS_MAX: Final = 10_000
"""Producers remembered; above it the one that came first is forgotten."""
NUMBERS_MAX: Final = 2 * PRODUCER_WINDOW
"""Numbers remembered of a producer: no open one is further behind the newest."""


class UnusedNumbers:
    """Numbers by producer and epoch. Owned by the proposer and its thread."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, set[int]]] = {}

    def of(self, claim: SequenceClaim) -> Container[int]:
        """The numbers of this producer in this epoch."""
        known = self._known.get(claim.producer_id)
        return known[1] if known is not None and known[0] == claim.producer_epoch else ()

    def add(self, claim: SequenceClaim) -> None:
        """The command under that number was evaluated, and no batch was written for it."""
        producer_id, epoch, sequence = claim.producer_id, claim.producer_epoch, claim.sequence
        known = self._known.get(producer_id)
        if known is None or known[0] != epoch:
            if known is None and len(self._known) >= PRODUCERS_MAX:
                del self._known[next(iter(self._known))]
            self._known[producer_id] = (epoch, {sequence})
            return
        numbers = known[1]
        numbers.add(sequence)
        if len(numbers) > NUMBERS_MAX:
            numbers.difference_update([n for n in numbers if n <= sequence - NUMBERS_MAX])
            if len(numbers) > NUMBERS_MAX:
                numbers.discard(min(numbers))

    def clear(self) -> None:
        """Forget all numbers: another leader evaluates from now on."""
        self._known.clear()

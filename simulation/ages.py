"""Holds replicas to the age they state: what was acknowledged longer ago must lie below their end.

The age is a duration by clocks that drift here, so the true time is taken to be as long as the
slowest clock would make it.
"""

from __future__ import annotations

from bisect import bisect_left

from quorum.core.contract.freshness import Freshness
from quorum.types import NodeId
from simulation.invariants.violation import Violation

RATE_MIN = 900
"""No clock of a simulated node runs slower, in parts per thousand of true time."""
_ROUNDING_MS = 3
"""Reading a clock in whole milliseconds, up to three times on the way."""


class Ages:
    """When what was acknowledged, by true time."""

    def __init__(self) -> None:
        self._times_us: list[int] = []
        self._ends: list[int] = []

    def acknowledged(self, now_us: int, end_offset: int) -> None:
        """A client was told that everything below ``end_offset`` is done."""
        before = self._ends[-1] if self._ends else 0
        if end_offset > before:
            self._times_us.append(now_us)
            self._ends.append(end_offset)

    def check(self, node_id: NodeId, known: Freshness, *, now_ms: int, now_us: int) -> None:
        """Compare what a node says at ``now_ms`` of its clock with what was acknowledged.

        Raises:
            Violation: It claims to be newer than it is.
        """
        if known.as_of_ms < 0:
            return
        age_ms = now_ms - known.as_of_ms + _ROUNDING_MS
        as_of_us = now_us - age_ms * 1000 * 1000 // RATE_MIN
        count = bisect_left(self._times_us, as_of_us)
        floor = self._ends[count - 1] if count else 0
        if known.end_offset < floor:
            raise Violation(
                "stated-age",
                "a replica lacks what was acknowledged before the moment it names",
                node=node_id,
                age_ms=age_ms,
                end_offset=known.end_offset,
                acknowledged=floor,
            )

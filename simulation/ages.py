"""Check the freshness that replicas report against what was acknowledged.

A replica that reports freshness ``t`` must hold everything acknowledged before ``t``. The report is
a duration on a drifting clock, so the check allows for the slowest clock.
"""

from __future__ import annotations

from bisect import bisect_left

from quorum.core.contract.freshness import Freshness
from quorum.types import NodeId
from simulation.invariants.violation import Violation

RATE_MIN = 900
"""Slowest clock of a simulated node, in parts per thousand of true time."""
_ROUNDING_MS = 3
"""Error of reading a clock in whole milliseconds, up to three times per report."""


class Ages:
    """Acknowledged positions with the true time of their acknowledgement."""

    def __init__(self) -> None:
        self._times_us: list[int] = []
        self._ends: list[int] = []

    def acknowledged(self, now_us: int, end_offset: int) -> None:
        """Record that a client received an acknowledgement for everything below ``end_offset``."""
        before = self._ends[-1] if self._ends else 0
        if end_offset > before:
            self._times_us.append(now_us)
            self._ends.append(end_offset)

    def check(self, node_id: NodeId, known: Freshness, *, now_ms: int, now_us: int) -> None:
        """Compare a node's reported freshness with the acknowledgements.

        ``now_ms`` is the time on the node's clock, ``now_us`` the true time.

        Raises:
            Violation: The node claims to be fresher than it is.
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
                "a replica lacks records acknowledged before its reported freshness",
                node=node_id,
                age_ms=age_ms,
                end_offset=known.end_offset,
                acknowledged=floor,
            )

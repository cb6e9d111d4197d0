"""From where to where a setting makes sense, and what is wrong with those that lie outside.

A number that is merely absurd does its harm late: a wait that no clock can hold, a size that no
memory has. So every number of the configuration has a greatest value beside its least.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

HOUR_MS = 3_600_000
"""Most of what somebody waits for: elections, answers, disks."""
CENTURY_MS = 100 * 365 * 24 * HOUR_MS
"""Most of what is only ever compared with an age; in practice: never."""
COUNT_MAX = 10_000_000
"""Most entries of a queue or a table in memory."""
BYTES_MAX = 1 << 40
"""Most bytes of anything that is held or written at a time."""


class Range(NamedTuple):
    """Both ends belong to it."""

    least: float
    most: float

    def problem(self, name: str, value: float) -> str:
        """One sentence that begins with ``name``; empty for a value within."""
        if value < self.least:
            return f"{name} must be at least {self.least}, not {value}"
        # Said so that whatever compares with nothing is outside.
        if not value <= self.most:
            return f"{name} must be at most {self.most}, not {value}"
        return ""


def out_of_range(settings: object, ranges: Mapping[str, Range], prefix: str = "") -> list[str]:
    """A sentence for each attribute outside its range, in the order of ``ranges``.

    An attribute that is None is switched off, and passes.
    """
    found = []
    for name, each in ranges.items():
        value = getattr(settings, name)
        problem = each.problem(prefix + name, value) if value is not None else ""
        if problem:
            found.append(problem)
    return found

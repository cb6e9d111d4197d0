"""Count the voters that hold each of two logs that differ, and those that lag too far to count.

A replica is asked twice: near the first difference, and at the end of what is in question. Only a
digest of something *behind* the common part shows which history a replica holds. One that has only
the common part, because it lags, decides nothing and is asked again.

Pure. See: ADR 5; ``divergence_resolution`` acts on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from quorum.types import DigestAt

NOTHING = DigestAt(-1, b"")


class Held(NamedTuple):
    """What one replica answered: its last batch boundaries at or below two offsets."""

    near: DigestAt
    """At the first offset where the two sides' answers differ."""
    end: DigestAt
    """At the end of what is in question."""


UNKNOWN = Held(NOTHING, NOTHING)


@dataclass(slots=True)
class Count:
    """How many voters hold which history."""

    own: int = 0
    theirs: int = 0
    others: int = 0
    """The most that agree on something that is neither."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two logs part, and what each side holds there."""

    own: Held
    theirs: Held
    common_end: int
    """Up to here both logs are known to be equal; -1 if that is no longer known."""
    end_offset: int

    @property
    def _floor(self) -> int:
        if self.common_end >= 0:
            return self.common_end
        return min(self.own.near.offset, self.theirs.near.offset) - 1

    def is_beyond(self, held: Held) -> bool:
        """Whether a replica has anything behind the common part."""
        return max(held.near.offset, held.end.offset) > self._floor

    def holds(self, held: Held, side: Held) -> bool:
        """Whether what a replica answered is the history of ``side``."""
        if held.near.value and side.near.offset > self._floor:
            return held.near == side.near
        return bool(held.end.value) and side.end.offset > self._floor and held.end == side.end

    def is_undecided(self, held: Held) -> bool:
        """Whether a replica's log does not reach far enough yet to decide."""
        return (
            bool(held.end.value)
            and not self.holds(held, self.own)
            and not self.holds(held, self.theirs)
            and held.near.offset <= self._floor
            and held.end.offset < self.end_offset
        )

    def count(self, voters: Iterable[Held]) -> Count:
        """Count the voters' answers; an unknown or undecided one counts for no side."""
        count, others = Count(), Counter[DigestAt]()
        for held in voters:
            if not self.is_beyond(held) or self.is_undecided(held):
                continue
            if self.holds(held, self.own):
                count.own += 1
            elif self.holds(held, self.theirs):
                count.theirs += 1
            else:
                others[held.near if held.near.offset > self._floor else held.end] += 1
        count.others = max(others.values(), default=0)
        return count

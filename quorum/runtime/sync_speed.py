"""Whether the disk is fast enough for syncs on the event loop's thread."""

from __future__ import annotations

SYNCS = 100
"""How many of the latest syncs must have been fast."""


class SyncSpeed:
    """Compares the durations of the latest ``SYNCS`` syncs with a bound, in milliseconds.

    The disk is fast when none of them took longer, so their 99th percentile is within the bound.
    One slow sync makes it slow until ``SYNCS`` fast ones have followed. With a bound of 0 it is
    never fast.
    """

    __slots__ = ("_fast", "_seconds_max")

    def __init__(self, ms_max: float) -> None:
        self._seconds_max = ms_max / 1000
        self._fast = 0

    def note(self, seconds: float) -> None:
        """Record the duration of one sync."""
        self._fast = self._fast + 1 if seconds <= self._seconds_max else 0

    @property
    def is_fast(self) -> bool:
        """Whether the latest syncs were all within the bound."""
        return self._fast >= SYNCS and self._seconds_max > 0

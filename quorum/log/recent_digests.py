"""Cache of the log digests at the newest batch boundaries.

A leader compares a digest with every Fetch. Nearly all are near the log's end, where the writer
has just computed the value; an older one costs a scan of one index interval of the segment
(``Segment.digest_at``).

The writer thread adds and clears, other threads only look up.
"""

from __future__ import annotations

from collections.abc import Mapping

BOUNDARIES_PER_GENERATION = 4096
"""Two generations are kept, so at least this many boundaries and at most twice as many."""


class RecentDigests:
    """Digest by offset for the newest boundaries. A lookup never waits for the writer."""

    __slots__ = ("_newer", "_older")

    def __init__(self) -> None:
        self._newer: dict[int, bytes] = {}
        self._older: dict[int, bytes] = {}

    def add(self, boundaries: Mapping[int, bytes]) -> None:
        """Store the digests behind batches just written."""
        if len(self._newer) >= BOUNDARIES_PER_GENERATION:
            # One swap instead of an eviction per batch.
            self._older, self._newer = self._newer, {}
        self._newer.update(boundaries)

    def get(self, offset: int) -> bytes | None:
        """Return the digest below ``offset``; None if it is not cached."""
        found = self._newer.get(offset)
        return self._older.get(offset) if found is None else found

    def clear(self) -> None:
        """Remove all: later batches may have another history."""
        self._newer, self._older = {}, {}

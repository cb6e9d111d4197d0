"""Quota of places that callers share, so that no single caller can take them all.

A caller may hold as many places as are still free: the dynamic threshold of shared-memory switches
with a factor of one (Choudhury and Hahne, "Dynamic queue length thresholds", 1998). A lone caller
gets half of all places; a greedy one gets half of what the others left. A caller without a place
gets one as long as one is free: of 1024 places, ten callers together are needed to take all. No
share has to be configured.
"""

from __future__ import annotations


class FairShare:
    """Counts the places of one kind by caller. Owned by one thread.

    Invariant: ``open_count`` is between 0 and ``most``, and the sum over all callers.
    """

    def __init__(self, name: str, most: int, *, caller_most: int | None = None) -> None:
        """``caller_most`` is a further bound for a single caller."""
        self.name = name
        self.most = most
        self.open_count = 0
        self.refused = 0
        """Times that ``take`` found no place."""
        self._caller_most = most if caller_most is None else caller_most
        self._held: dict[str, int] = {}

    def has_room(self, caller: str) -> bool:
        """Whether ``take`` would succeed now."""
        held = self._held.get(caller, 0)
        free = self.most - self.open_count
        return free > 0 and held <= free and held < self._caller_most

    def take(self, caller: str) -> bool:
        """Take a place; return False if this caller gets none now."""
        if not self.has_room(caller):
            self.refused += 1
            return False
        self._held[caller] = self._held.get(caller, 0) + 1
        self.open_count += 1
        return True

    def release(self, caller: str) -> None:
        """Release a place; call it once for every ``take`` that succeeded."""
        self.open_count -= 1
        left = self._held[caller] - 1
        if left:
            self._held[caller] = left
        else:
            del self._held[caller]

    def held_by(self, caller: str) -> int:
        """Return the number of places of one caller."""
        return self._held.get(caller, 0)

"""Random numbers that a script can predict."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from _typeshed import SupportsLenAndGetItem

Item = TypeVar("Item")


class PinnedRandom(random.Random):
    """Draws the same share of every timer's random range; ids are random but seeded.

    With share 1/4 an election timer drawn from [E, 2E) is always 1.25 E.
    """

    def __init__(self, seed: int, share: float) -> None:
        super().__init__(seed)
        self.share = share

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        low, high = (0, start) if stop is None else (start, stop)
        return low + int((high - low) * self.share) // step * step

    def randint(self, a: int, b: int) -> int:
        return self.randrange(a, b + 1)

    def choice(self, seq: SupportsLenAndGetItem[Item]) -> Item:
        return seq[0]

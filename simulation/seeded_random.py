"""Random numbers for a run: those of ``random.Random``, drawn in one call instead of three."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from _typeshed import SupportsLenAndGetItem

T = TypeVar("T")


class SeededRandom(random.Random):
    """Draws exactly the numbers that ``random.Random`` of the same seed draws.

    A run draws about two numbers per event; the checks and indirections of the standard methods
    would cost more than a percent of its time.
    """

    def randint(self, a: int, b: int) -> int:
        """Uniform in [``a``, ``b``], both ends included.

        Raises:
            ValueError: The range is empty.
        """
        width = b - a + 1
        if width < 1:
            raise ValueError(f"nothing to draw from {a} to {b}")
        bits = width.bit_length()
        drawn = self.getrandbits(bits)
        while drawn >= width:
            drawn = self.getrandbits(bits)
        return a + drawn

    def choice(self, seq: SupportsLenAndGetItem[T]) -> T:
        """Return one element.

        Raises:
            IndexError: ``seq`` is empty.
        """
        width = len(seq)
        if not width:
            raise IndexError("nothing to choose from")
        bits = width.bit_length()
        drawn = self.getrandbits(bits)
        while drawn >= width:
            drawn = self.getrandbits(bits)
        return seq[drawn]

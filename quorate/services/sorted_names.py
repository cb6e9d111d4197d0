"""Names in ascending order, to which single ones are added at a cost that hardly grows with them.

One sorted list of a hundred thousand names moves half of them for each that comes or goes. So the
names are cut into short lists.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Final

CUT_NAMES: Final = 512
"""Names of a new list; it is cut in two when it has twice as many."""


class SortedNames:
    """Distinct names, ascending."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        ordered = sorted(names)
        self._lists = [
            ordered[start : start + CUT_NAMES] for start in range(0, len(ordered), CUT_NAMES)
        ]
        """None of them is empty."""
        self._firsts = [names[0] for names in self._lists]

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self._lists)

    def __len__(self) -> int:
        return sum(map(len, self._lists))

    def add(self, name: str) -> None:
        """Add a name unless it is there."""
        if not self._lists:
            self._lists, self._firsts = [[name]], [name]
            return
        at = self._list_of(name)
        names = self._lists[at]
        place = bisect_left(names, name)
        if place < len(names) and names[place] == name:
            return
        names.insert(place, name)
        if place == 0:
            self._firsts[at] = name
        if len(names) >= 2 * CUT_NAMES:
            self._lists.insert(at + 1, names[CUT_NAMES:])
            self._firsts.insert(at + 1, names[CUT_NAMES])
            del names[CUT_NAMES:]

    def discard(self, name: str) -> None:
        """Remove a name if it is there."""
        if not self._lists:
            return
        at = self._list_of(name)
        names = self._lists[at]
        place = bisect_left(names, name)
        if place == len(names) or names[place] != name:
            return
        del names[place]
        if not names:
            del self._lists[at], self._firsts[at]
        elif place == 0:
            self._firsts[at] = names[0]

    def since(self, name: str) -> Iterator[str]:
        """Yield the names that are not below ``name``."""
        return self._from(name, after=False)

    def after(self, name: str) -> Iterator[str]:
        """Yield the names greater than ``name``."""
        return self._from(name, after=True)

    def _from(self, name: str, *, after: bool) -> Iterator[str]:
        if not self._lists:
            return iter(())
        at = self._list_of(name)
        names = self._lists[at]
        place = bisect_right(names, name) if after else bisect_left(names, name)
        return chain(islice(names, place, None), chain.from_iterable(self._lists[at + 1 :]))

    def _list_of(self, name: str) -> int:
        """Return the number of the list that has the name, or gets it."""
        return max(0, bisect_right(self._firsts, name) - 1)

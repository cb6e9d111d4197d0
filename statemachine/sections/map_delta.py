"""Persistent maps under change: read at any moment, settle into an immutable map in O(1).

``MapDelta`` is one map, ``NestedMapDelta`` a map of maps that opens only touched groups. Both
share structure with their base map, so settling costs no more than the changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeAlias, TypeVar, cast

from immutables import Map, MapMutation

from statemachine.sections.map_lookup import Lookup

K = TypeVar("K")
V = TypeVar("V")
G = TypeVar("G")


class MapDelta(Generic[K, V]):
    """A map being changed. Owned by one ``ImageDelta``; not shared between threads."""

    __slots__ = ("_current", "_mutation", "get")

    def __init__(self, base: Map[K, V]) -> None:
        self._current: Map[K, V] | MapMutation[K, V] = base
        self._mutation: MapMutation[K, V] | None = None
        self.get: Lookup[K, V] = base.get
        """Return the value as of now, or the default. It is the method of the present map."""

    def __getitem__(self, key: K) -> V:
        return self._current[key]

    def __contains__(self, key: object) -> bool:
        return key in self._current

    def __len__(self) -> int:
        return len(self._current)

    def __iter__(self) -> Iterator[K]:
        return iter(self.settle())

    def set(self, key: K, value: V) -> None:
        """Store a value."""
        mutation = self._mutation
        if mutation is None:
            mutation = self._open()
        mutation[key] = value

    def pop(self, key: K) -> V:
        """Remove a key that must be present and return its value."""
        mutation = self._mutation
        if mutation is None:
            mutation = self._open()
        return mutation.pop(key)

    def settle(self) -> Map[K, V]:
        """Return the immutable map as of now; the delta stays usable."""
        current = self._current
        if isinstance(current, Map):
            return current
        settled = current.finish()
        self._current = settled
        self._mutation = None
        self.get = settled.get
        return settled

    def _open(self) -> MapMutation[K, V]:
        # Nothing is open, so ``_current`` is the immutable map.
        mutation = cast("Map[K, V]", self._current).mutate()
        self._current = self._mutation = mutation
        self.get = mutation.get
        return mutation


class NestedMapDelta(Generic[G, K, V]):
    """A map of maps being changed. A group that becomes empty disappears."""

    __slots__ = ("_opened", "_outer")

    def __init__(self, base: Map[G, Map[K, V]]) -> None:
        self._outer = base
        self._opened: dict[G, MapMutation[K, V]] = {}

    def find(self, group: G, key: K) -> V | None:
        """Return one value as of now, or None."""
        opened = self._opened.get(group)
        if opened is not None:
            return opened.get(key)
        inner = self._outer.get(group)
        return None if inner is None else inner.get(key)

    def group(self, group: G) -> Map[K, V]:
        """Return one whole group as of now; empty if there is none."""
        opened = self._opened.pop(group, None)
        if opened is None:
            return self._outer.get(group, EMPTY_MAP)
        settled = opened.finish()
        if settled:
            self._outer = self._outer.set(group, settled)
        elif group in self._outer:
            self._outer = self._outer.delete(group)
        return settled

    def present(self, group: G) -> Map[K, V] | MapMutation[K, V]:
        """Return one group for reading until it is changed; empty if there is none."""
        opened = self._opened.get(group)
        return self._outer.get(group, EMPTY_MAP) if opened is None else opened

    def open_present(self, group: G, present: Map[K, V] | MapMutation[K, V]) -> MapMutation[K, V]:
        """Open for changing what ``present`` has just returned; as ``open_group``."""
        if isinstance(present, Map):
            self._opened[group] = present = present.mutate()
        return present

    def groups(self) -> list[G]:
        """Return every group that is not empty, in no particular order."""
        return list(self.settle())

    def open_group(self, group: G) -> MapMutation[K, V]:
        """Return the group, opened for changing until anything else is asked of this map."""
        opened = self._opened.get(group)
        if opened is None:
            opened = self._opened[group] = self._outer.get(group, EMPTY_MAP).mutate()
        return opened

    def drop_group(self, group: G) -> Map[K, V]:
        """Remove a whole group and return its content."""
        held = self.group(group)
        if held:
            # Empty, so it disappears when all groups are settled.
            self._opened[group] = EMPTY_MAP.mutate()
        return held

    def settle(self) -> Map[G, Map[K, V]]:
        """Return the immutable map of maps as of now; the delta stays usable."""
        if self._opened:
            outer = self._outer.mutate()
            for group, opened in self._opened.items():
                settled = opened.finish()
                if settled:
                    outer[group] = settled
                elif group in outer:
                    del outer[group]
            self._opened.clear()
            self._outer = outer.finish()
        return self._outer


EMPTY_MAP: Map[Any, Any] = Map()
"""The only empty map; every empty section of an image holds it."""

ReadMap: TypeAlias = Map[K, V] | MapDelta[K, V]

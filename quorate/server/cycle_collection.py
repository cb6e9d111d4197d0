"""When a server looks for reference cycles.

The objects of an image are in no cycle: reference counting frees them. Python's collector visits
every new object all the same, and waits for a number of them: a fence of 30,000 partitions, or a
minute of new topics, then stops the event loop for a second, which is longer than peers may wait.
So the collector is off, from before the start, whose replay it would make three times as long.
Once a second this policy visits what is new, if that is not much, or excludes it for good, if it
comes from applied changes: records, and what one record changes by derivation.

What is excluded is still freed by its reference count. Only a cycle among excluded objects stays
in memory for ever. Nothing in an image makes one, and other objects are excluded only when a visit
has found them in use.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from typing import Protocol

PERIOD_S = 1.0
"""How often the policy looks at the number of new objects."""
FULL_EVERY = 60
"""Periods between two visits of everything that is not excluded."""
YOUNG_MIN = 5_000
"""Fewer new objects than this are left alone."""
OBJECTS_PER_CHANGE = 10
"""New objects that an applied change explains: a partition has about eight."""
FULL_S_MAX = 0.02
"""A full visit that takes longer excludes what it found in use, so that the next one is short."""


class Collector(Protocol):
    """The functions of the module ``gc`` that the policy uses."""

    def collect(self, generation: int = 2, /) -> int:
        """Visit the objects up to a generation, and free cycles."""

    def freeze(self) -> None:
        """Exclude all objects from later visits."""

    def disable(self) -> None:
        """Switch the automatic collection off."""

    def enable(self) -> None:
        """Switch the automatic collection on."""

    def get_count(self) -> tuple[int, int, int]:
        """Return how many more objects were made than freed since the last visit, first."""


class CycleCollection:
    """Runs the collector on the event loop, from ``start`` to ``stop``.

    Args:
        applied: Returns the number of applied changes, which never falls.
    """

    def __init__(
        self,
        applied: Callable[[], int],
        *,
        collector: Collector = gc,
        clock_s: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._applied = applied
        self._gc = collector
        self._clock_s = clock_s
        self._applied_before = 0
        self._periods = 0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Exclude everything loaded so far, and take over from the automatic collection."""
        self._gc.collect()
        self._gc.freeze()
        self._gc.disable()
        self._applied_before = self._applied()
        self._again()

    def stop(self) -> None:
        """Leave the collection to Python again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._gc.enable()

    def turn(self) -> None:
        """Do what is due in one period."""
        applied = self._applied()
        changes, self._applied_before = applied - self._applied_before, applied
        self._periods += 1
        young = self._gc.get_count()[0]
        if young >= YOUNG_MIN:
            if young <= changes * OBJECTS_PER_CHANGE:
                self._gc.freeze()
            # It also counts from 0 again.
            self._gc.collect(1)
        if self._periods % FULL_EVERY == 0:
            began_s = self._clock_s()
            self._gc.collect()
            if self._clock_s() - began_s > FULL_S_MAX:
                self._gc.freeze()

    def _again(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(PERIOD_S, self._on_timer)

    def _on_timer(self) -> None:
        self.turn()
        self._again()

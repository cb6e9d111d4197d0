"""Counters and histograms, one per catalog row, in the caller's registry."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from prometheus_client import CollectorRegistry, Counter, Histogram, Metric
from prometheus_client.registry import Collector

from metrics.catalog import UPDATED, Kind

PENDING_MAX: Final = 4096
"""Bound of queued updates of counters, and of histograms; the next one applies them all."""

_Enter: TypeAlias = Callable[[float], None]


class Families(Collector):
    """The event-driven metrics of the catalog, in the given registry.

    ``count`` and ``time`` look a metric up by its catalog name, so a misspelt name raises
    ``KeyError`` in the first test that reaches it. Any thread may call them.

    An update is queued, and applied by ``settle``, at the latest when the registry is collected.
    Applying many at once costs a tenth per update of applying each in the middle of a write, where
    the code is in no CPU cache.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._counted: deque[tuple[_Enter, float]] = deque()
        self._timed: deque[tuple[_Enter, float]] = deque()
        self._settling = threading.Lock()
        # Collectors run in order of registration, so this one settles before the others are read.
        registry.register(self)
        self._counters: dict[str, Counter] = {}
        self._histograms: dict[str, Histogram] = {}
        for metric in UPDATED:
            if metric.kind is Kind.COUNTER:
                self._counters[metric.name] = Counter(
                    metric.name, metric.help, metric.labels, registry=registry
                )
            else:
                self._histograms[metric.name] = Histogram(
                    metric.name,
                    metric.help,
                    metric.labels,
                    registry=registry,
                    buckets=metric.buckets,
                )
        # Cached: the library would look a child up by its labels for every update.
        self._increments: dict[tuple[str, tuple[str, ...]], _Enter] = {}
        self._observations: dict[tuple[str, tuple[str, ...]], _Enter] = {}

    def count(self, name: str, *labels: str, by: float = 1) -> None:
        """Add to a counter. ``labels`` are values in the catalog's order."""
        enter = self._increments.get((name, labels))
        if enter is None:
            metric = self._counters[name]
            enter = (metric.labels(*labels) if labels else metric).inc
            self._increments[name, labels] = enter
        self._counted.append((enter, by))
        if len(self._counted) > PENDING_MAX:
            self.settle()

    def time(self, name: str, value: float, *labels: str) -> None:
        """Record one observation of a histogram, in its base unit."""
        enter = self._observations.get((name, labels))
        if enter is None:
            metric = self._histograms[name]
            enter = (metric.labels(*labels) if labels else metric).observe
            self._observations[name, labels] = enter
        self._timed.append((enter, value))
        if len(self._timed) > PENDING_MAX:
            self.settle()

    def settle(self) -> None:
        """Apply all queued updates. Those of one counter are added up first."""
        counted, timed = self._counted, self._timed
        # The lock makes a thread that finds nothing wait for the one that took it.
        with self._settling:
            totals: dict[_Enter, float] = {}
            # Taken one by one: other threads may add some meanwhile.
            while counted:
                enter, by = counted.popleft()
                totals[enter] = totals.get(enter, 0) + by
            for enter, by in totals.items():
                enter(by)
            while timed:
                enter, value = timed.popleft()
                enter(value)

    def describe(self) -> Iterable[Metric]:
        """Return nothing: this collector has no metric of its own."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Apply queued updates before the other metrics are collected; return nothing."""
        self.settle()
        return ()

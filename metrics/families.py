"""Live counters and histograms, one per catalog row, in a registry of the caller's."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from prometheus_client import CollectorRegistry, Counter, Histogram, Metric
from prometheus_client.registry import Collector

from metrics.catalog import UPDATED, Kind

PENDING_MAX: Final = 4096
"""Updates that are noted and not entered yet; the one that comes on top enters them all."""

_Enter: TypeAlias = Callable[[float], None]


class Families(Collector):
    """The event-driven half of the catalog, registered in the registry handed in.

    ``count`` and ``time`` look a metric up by its catalog name, so a misspelt name fails in the
    first test that reaches it (``KeyError``). Safe to call from any thread.

    An update is noted at once and entered by ``settle``, at the latest when the registry is
    collected: entering many in a row costs each a tenth of what it costs in the middle of a
    write, where the code for it is in no cache.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._pending: deque[tuple[_Enter, float]] = deque()
        # Collected in the order of registration, so everything is entered before it is read.
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
        # Found once: the library looks a child up by its labels again for every update.
        self._increments: dict[tuple[str, tuple[str, ...]], _Enter] = {}
        self._observations: dict[tuple[str, tuple[str, ...]], _Enter] = {}

    def count(self, name: str, *labels: str, by: float = 1) -> None:
        """Add to a counter. ``labels`` are values in the catalog's order."""
        enter = self._increments.get((name, labels))
        if enter is None:
            metric = self._counters[name]
            enter = (metric.labels(*labels) if labels else metric).inc
            self._increments[name, labels] = enter
        self._pending.append((enter, by))
        if len(self._pending) > PENDING_MAX:
            self.settle()

    def time(self, name: str, value: float, *labels: str) -> None:
        """Record one observation of a histogram, in its base unit."""
        enter = self._observations.get((name, labels))
        if enter is None:
            metric = self._histograms[name]
            enter = (metric.labels(*labels) if labels else metric).observe
            self._observations[name, labels] = enter
        self._pending.append((enter, value))
        if len(self._pending) > PENDING_MAX:
            self.settle()

    def settle(self) -> None:
        """Enter everything that was noted."""
        pending = self._pending
        while pending:
            try:
                enter, value = pending.popleft()
            except IndexError:
                # Another thread enters the rest.
                return
            enter(value)

    def describe(self) -> Iterable[Metric]:
        """No metric of its own."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """No metric of its own; the others are up to date from here on."""
        self.settle()
        return ()

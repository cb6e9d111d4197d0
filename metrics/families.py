"""Live counters and histograms, one per catalog row, in a registry of the caller's."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

from metrics.catalog import UPDATED, Kind


class Families:
    """The event-driven half of the catalog, registered in the registry handed in.

    ``count`` and ``time`` look a metric up by its catalog name, so a misspelt name fails in the
    first test that reaches it (``KeyError``). Safe to call from any thread.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
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

    def count(self, name: str, *labels: str, by: float = 1) -> None:
        """Add to a counter. ``labels`` are values in the catalog's order."""
        counter = self._counters[name]
        (counter.labels(*labels) if labels else counter).inc(by)

    def time(self, name: str, value: float, *labels: str) -> None:
        """Record one observation of a histogram, in its base unit."""
        histogram = self._histograms[name]
        (histogram.labels(*labels) if labels else histogram).observe(value)

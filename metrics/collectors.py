"""Metrics that are read on scrape; between scrapes nothing is updated.

One that fails is left out of the page, and ``quorate_check_ok{check="metrics"}`` falls to 0.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from metrics.catalog import CHECK_OK, Kind, Metric
from metrics.health import Check, run_checks

SourceT = TypeVar("SourceT")

Reading: TypeAlias = float | Mapping[str, float] | Mapping[tuple[str, ...], float] | None
"""A value, or values by label values in the row's order. None or an empty mapping: no sample."""
Family: TypeAlias = CounterMetricFamily | GaugeMetricFamily

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ScrapedMetric(Generic[SourceT]):
    """A row of the catalog, and the function that reads it from the scraped source.

    What a counter reads never decreases while the process runs.
    """

    row: Metric
    read: Callable[[SourceT], Reading]

    def family(self, source: SourceT) -> Family:
        """Return the samples now."""
        return _family(self.row, self.read(source))


class ScrapeCollector(Collector, Generic[SourceT]):
    """The gauges and counters that are read on scrape.

    ``source`` is called once per scrape, on the thread that renders the page. With
    ``metrics.http`` that is the event loop, so a metric may read what the loop owns but must not
    block.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        scraped: Sequence[ScrapedMetric[SourceT]],
        source: Callable[[], SourceT],
        checks: Sequence[Check] = (),
    ) -> None:
        self._scraped = scraped
        self._source = source
        self._checks = checks
        registry.register(self)

    def describe(self) -> Iterable[Family]:
        """Return nothing, so that registration does not read the source."""
        return ()

    def collect(self) -> Iterator[Family]:
        """Yield all metrics that have a value now."""
        source = self._source()
        all_well = True
        for metric in self._scraped:
            try:
                family = metric.family(source)
            except Exception:  # noqa: BLE001 - one broken metric must not blind the operator
                _log.exception("event=metric_failed metric=%s", metric.row.name)
                all_well = False
                continue
            if family.samples:
                yield family
        results = {result.name: float(result.ok) for result in run_checks(self._checks)}
        yield _family(CHECK_OK, {**results, "metrics": float(all_well)})


def _family(row: Metric, reading: Reading) -> Family:
    kind = CounterMetricFamily if row.kind is Kind.COUNTER else GaugeMetricFamily
    family = kind(row.name, row.help, labels=row.labels)
    if isinstance(reading, Mapping):
        for labels, value in reading.items():
            family.add_metric((labels,) if isinstance(labels, str) else labels, value)
    elif reading is not None:
        family.add_metric((), reading)
    return family

"""Gauges that are read on scrape; between scrapes nothing is updated.

A gauge that fails is left out of the page, and ``quorate_check_ok{check="metrics"}`` falls to 0.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from metrics.catalog import CHECK_OK, Metric
from metrics.health import Check, run_checks

SourceT = TypeVar("SourceT")

Reading: TypeAlias = float | Mapping[str, float] | Mapping[tuple[str, ...], float] | None
"""A value, or values by label values in the row's order. None or an empty mapping: no sample."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Gauge(Generic[SourceT]):
    """A row of the catalog, and the function that reads it from the scraped source."""

    row: Metric
    read: Callable[[SourceT], Reading]

    def family(self, source: SourceT) -> GaugeMetricFamily:
        """Return the gauge's samples now."""
        return _family(self.row, self.read(source))


class GaugeCollector(Collector, Generic[SourceT]):
    """The gauges of the catalog.

    ``source`` is called once per scrape, on the thread that renders the page. With
    ``metrics.http`` that is the event loop, so a gauge may read what the loop owns but must not
    block.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        gauges: Sequence[Gauge[SourceT]],
        source: Callable[[], SourceT],
        checks: Sequence[Check] = (),
    ) -> None:
        self._gauges = gauges
        self._source = source
        self._checks = checks
        registry.register(self)

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Return nothing, so that registration does not read the source."""
        return ()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield all gauges that have a value now."""
        source = self._source()
        all_well = True
        for gauge in self._gauges:
            try:
                family = gauge.family(source)
            except Exception:  # noqa: BLE001 - one broken gauge must not blind the operator
                _log.exception("event=metrics_gauge_failed gauge=%s", gauge.row.name)
                all_well = False
                continue
            if family.samples:
                yield family
        results = {result.name: float(result.ok) for result in run_checks(self._checks)}
        yield _family(CHECK_OK, {**results, "metrics": float(all_well)})


def _family(row: Metric, reading: Reading) -> GaugeMetricFamily:
    family = GaugeMetricFamily(row.name, row.help, labels=row.labels)
    if isinstance(reading, Mapping):
        for labels, value in reading.items():
            family.add_metric((labels,) if isinstance(labels, str) else labels, value)
    elif reading is not None:
        family.add_metric((), reading)
    return family

"""Prometheus metrics and health probes of a node. See DESIGN.md.

The caller passes the registry; importing this package registers nothing.
"""

from metrics.collectors import ScrapeCollector, ScrapedMetric
from metrics.families import Families
from metrics.health import Check, CheckResult
from metrics.http import Endpoint, HttpServer
from metrics.observer import Observer

__all__ = [
    "Check",
    "CheckResult",
    "Endpoint",
    "Families",
    "HttpServer",
    "Observer",
    "ScrapeCollector",
    "ScrapedMetric",
]

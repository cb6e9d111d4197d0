"""What every process has: processor time, memory, descriptors, the collections of its cycles.

The names are those of Prometheus' client libraries, so that dashboards made for them work.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector


def register_process_metrics(registry: CollectorRegistry) -> None:
    """Add the metrics of this process; they are read at a scrape, from /proc."""
    ProcessCollector(registry=registry)
    GCCollector(registry=registry)
    PlatformCollector(registry=registry)

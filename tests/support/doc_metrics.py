"""The tables of docs/reference/metrics.md, and every metric by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry

from metrics.catalog import CHECK_OK, RAFT_UPDATED, SERVICE_UPDATED, SNAPSHOT_UPDATED, Metric
from metrics.collectors import ScrapedMetric
from metrics.kafka_names import KAFKA_METRICS, KIP_OF
from metrics.process_metrics import register_process_metrics
from quorate.server.counters import PROCESS_COUNTERS, RAFT_COUNTERS
from quorate.server.gauges import (
    CONTROLLER_GAUGES,
    PROCESS_GAUGES,
    RAFT_GAUGES,
    SNAPSHOT_GAUGES,
)
from quorate.server.scrape import Scrape
from tests.support.doc_regions import table


def _rows(scraped: Iterable[ScrapedMetric[Scrape]]) -> tuple[Metric, ...]:
    return tuple(each.row for each in scraped)


GROUPS: dict[str, tuple[Metric, ...]] = {
    "Replication": RAFT_UPDATED + _rows(RAFT_COUNTERS + RAFT_GAUGES),
    "Checkpoints": SNAPSHOT_UPDATED + _rows(SNAPSHOT_GAUGES),
    "Commands and calls": SERVICE_UPDATED,
    "Controller": _rows(CONTROLLER_GAUGES),
    "Process": (*_rows(PROCESS_COUNTERS + PROCESS_GAUGES), CHECK_OK),
}
CATALOG = {metric.name: metric for group in GROUPS.values() for metric in group}


def kafka_names(metric: Metric) -> list[str]:
    """Kafka's names for a metric of ours."""
    return metric.kafka.split(", ") if metric.kafka else []


def metric_tables() -> str:
    parts = []
    for title, metrics in GROUPS.items():
        rows = [
            (
                f"`{each.name}`",
                each.kind.value,
                ", ".join(f"`{label}`" for label in each.labels),
                each.help,
                ", ".join(f"{name} ({KIP_OF[name]})" for name in kafka_names(each)),
            )
            for each in metrics
        ]
        shown = table(["Metric", "Type", "Labels", "Meaning", "Kafka"], rows)
        parts.append(f"## {title}\n\n{shown}\n")
    return "\n".join(parts)


def kafka_table() -> str:
    """Every metric of Kafka with ours beside it, or the reason for none."""
    rows = []
    for each in KAFKA_METRICS:
        ours = [f"`{name}`" for name, row in CATALOG.items() if each.name in kafka_names(row)]
        rows.append((each.kip, each.name, ", ".join(ours) or f"none: {each.without}"))
    return table(["Proposal", "Kafka", "Quorate"], rows) + "\n"


def process_table() -> str:
    """What ``metrics.process_metrics`` registers."""
    registry = CollectorRegistry()
    register_process_metrics(registry)
    rows = [
        (
            f"`{each.name}{'_total' if each.type == 'counter' else ''}`",
            each.type,
            each.documentation.rstrip(".") + ".",
        )
        for each in registry.collect()
    ]
    return table(["Metric", "Type", "Meaning"], rows) + "\n"


MAKERS: dict[str, Callable[[], str]] = {
    "metrics": metric_tables,
    "kafka-metrics": kafka_table,
    "process-metrics": process_table,
}

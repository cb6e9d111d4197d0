"""The tables of docs/reference/metrics.md, and every metric by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from metrics.catalog import CHECK_OK, RAFT_UPDATED, SERVICE_UPDATED, SNAPSHOT_UPDATED, Metric
from metrics.collectors import Gauge
from quorate.server.gauges import (
    CONTROLLER_GAUGES,
    PROCESS_GAUGES,
    RAFT_GAUGES,
    SNAPSHOT_GAUGES,
    Scrape,
)
from tests.support.doc_regions import table


def _rows(gauges: Iterable[Gauge[Scrape]]) -> tuple[Metric, ...]:
    return tuple(each.row for each in gauges)


GROUPS: dict[str, tuple[Metric, ...]] = {
    "Replication": RAFT_UPDATED + _rows(RAFT_GAUGES),
    "Checkpoints": SNAPSHOT_UPDATED + _rows(SNAPSHOT_GAUGES),
    "Commands and calls": SERVICE_UPDATED,
    "Controller": _rows(CONTROLLER_GAUGES),
    "Process": (*_rows(PROCESS_GAUGES), CHECK_OK),
}
CATALOG = {metric.name: metric for group in GROUPS.values() for metric in group}


def metric_tables() -> str:
    parts = []
    for title, metrics in GROUPS.items():
        rows = [
            (
                f"`{each.name}`",
                each.kind.value,
                ", ".join(f"`{label}`" for label in each.labels),
                each.help,
                each.kafka,
            )
            for each in metrics
        ]
        shown = table(["Metric", "Type", "Labels", "Meaning", "Kafka"], rows)
        parts.append(f"## {title}\n\n{shown}\n")
    return "\n".join(parts)


MAKERS: dict[str, Callable[[], str]] = {"metrics": metric_tables}

"""The catalog obeys what `promtool check metrics` asks for, and the page it makes is valid."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from immutables import Map
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from metrics.catalog import UPDATED, Kind, Metric
from metrics.collectors import ScrapeCollector
from metrics.families import Families
from metrics.kafka_names import KAFKA_METRICS, KIP_OF
from metrics.process_metrics import register_process_metrics
from quorate.server.counters import COUNTERS
from quorate.server.gauges import GAUGES
from statemachine.image import MetadataImage
from statemachine.sections.features import FeaturesImage
from tests.support.doc_metrics import CATALOG, GROUPS, kafka_names
from tests.support.promtool import PROMTOOL, promtool
from tests.support.scrapes import scrape, view

# Units that are not base units, and abbreviations, as promtool's linter knows them.
SCALED_UNITS = re.compile(
    r"_(milli|micro|nano|kilo|kibi|mega|mibi|giga|gibi|tera|tebi|peta|pebi)"
    r"(seconds|bytes|meters|grams)?(_|$)|_(minutes|hours|days|weeks|bits|percent)(_|$)"
)
ABBREVIATED_UNITS = re.compile(r"_(s|ms|us|ns|sec|b|kb|mb|gb|tb|pb|m|h|d)(_|$)")
RESERVED_LABELS = {"le", "quantile", "job", "instance"}


def problems(metric: Metric) -> list[str]:
    found = []
    name = metric.name
    if not re.fullmatch(r"quorate_[a-z][a-z0-9_]*", name) or "__" in name:
        found.append("prefix, camelCase or reserved characters")
    if not metric.help or not metric.help.endswith("."):
        found.append("no help sentence")
    if (metric.kind is Kind.COUNTER) != name.endswith("_total"):
        found.append("counters and only counters end in _total")
    if name.endswith(("_count", "_sum", "_bucket", "_created")):
        found.append("a suffix that histograms own")
    if any(f"_{kind.value}" in name for kind in Kind) or "summary" in name:
        found.append("type in the name")
    if SCALED_UNITS.search(name) or ABBREVIATED_UNITS.search(name):
        found.append("not a base unit")
    if any(not re.fullmatch(r"[a-z][a-z0-9_]*", label) for label in metric.labels):
        found.append("camelCase label")
    if RESERVED_LABELS & set(metric.labels):
        found.append("reserved label")
    if (metric.kind is Kind.HISTOGRAM) != bool(metric.buckets):
        found.append("buckets belong to histograms")
    if list(metric.buckets) != sorted(set(metric.buckets)):
        found.append("buckets must ascend")
    return found


@pytest.mark.parametrize("metric", CATALOG.values(), ids=lambda metric: metric.name)
def test_each_metric_obeys_the_naming_rules(metric: Metric) -> None:
    assert problems(metric) == []


@pytest.mark.parametrize(
    "bad",
    [
        Metric("quorate_fooBar", Kind.GAUGE, "Help."),
        Metric("foo", Kind.GAUGE, "Help."),
        Metric("quorate_foo", Kind.COUNTER, "Help."),
        Metric("quorate_foo_total", Kind.GAUGE, "Help."),
        Metric("quorate_foo_ms", Kind.GAUGE, "Help."),
        Metric("quorate_foo_milliseconds", Kind.GAUGE, "Help."),
        Metric("quorate_foo_count", Kind.GAUGE, "Help."),
        Metric("quorate_gauge_foo", Kind.GAUGE, "Help."),
        Metric("quorate_foo", Kind.GAUGE, ""),
        Metric("quorate_foo", Kind.GAUGE, "Help.", ("nodeId",)),
        Metric("quorate_foo_seconds", Kind.HISTOGRAM, "Help.", (), (2.0, 1.0)),
    ],
    ids=lambda metric: metric.name,
)
def test_the_rules_catch_bad_names(bad: Metric) -> None:
    assert problems(bad)


def test_nothing_that_counts_is_a_gauge() -> None:
    """What happened so often, was refused or was dropped since the start only ever rises."""
    counts = re.compile(r"^Times |\b(refused|dropped|suppressed|restarted|rejected)\b")
    assert [row.name for row in CATALOG.values() if row.kind is Kind.GAUGE
            and counts.search(f"{row.help} {row.name.replace('_', ' ')}")] == []  # fmt: skip


def test_every_metric_of_kafka_has_one_of_ours_or_a_reason() -> None:
    named = [name for metric in CATALOG.values() for name in kafka_names(metric)]
    assert set(named) <= {each.name for each in KAFKA_METRICS}
    assert len(KIP_OF) == len(KAFKA_METRICS)
    for each in KAFKA_METRICS:
        assert (each.name in named) is not bool(each.without), each


def test_a_node_has_the_metrics_of_its_process() -> None:
    registry = CollectorRegistry()
    register_process_metrics(registry)
    assert (registry.get_sample_value("process_cpu_seconds_total") or 0) > 0
    assert (registry.get_sample_value("process_resident_memory_bytes") or 0) > 1 << 20
    assert (registry.get_sample_value("process_open_fds") or 0) > 0
    assert not {each.name for each in registry.collect()} & set(CATALOG)


def test_names_are_unique_over_both_halves() -> None:
    assert len(CATALOG) == sum(len(group) for group in GROUPS.values())
    assert len(CATALOG) == len(UPDATED) + len(GAUGES) + len(COUNTERS) + 1


@pytest.mark.parametrize(
    "wanted",
    ["GenSnapshotLatencyMs", "LoadSnapshotLatencyMs", "SnapshotSizeBytes", "SnapshotLag"],
)
def test_every_snapshot_metric_of_the_design_has_an_equivalent(wanted: str) -> None:
    """Requirement 630.16."""
    assert [metric.name for metric in CATALOG.values() if wanted in metric.kafka]


def full_page() -> bytes:
    """A page on which every metric of the catalog has at least one sample."""
    registry = CollectorRegistry()
    families = Families(registry)
    for metric in UPDATED:
        values = ["x"] * len(metric.labels)
        if metric.kind is Kind.COUNTER:
            families.count(metric.name, *values)
        else:
            families.time(metric.name, 0.5, *values)
    image = replace(MetadataImage(), features=FeaturesImage(Map({"metadata.version": 20})))
    shown = scrape(view(2, fetched_ms=1), image=image)
    ScrapeCollector(registry, GAUGES + COUNTERS, lambda: shown)
    return generate_latest(registry)


def test_the_page_shows_every_metric_of_the_catalog_and_no_other() -> None:
    seen = set()
    for family in text_string_to_metric_families(full_page().decode()):
        if not family.name.endswith("_created"):
            seen.add(family.name + ("_total" if family.type == "counter" else ""))
    assert seen == set(CATALOG)


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed")
def test_promtool_accepts_the_page() -> None:
    done = promtool("check", "metrics", page=full_page())
    assert done.returncode == 0, done.stderr.decode() + done.stdout.decode()

"""Gauges that are read when somebody asks: nothing is kept up to date between two scrapes.

A source that fails costs its own gauges, not the whole page: they are left out and
``quorate_check_ok{check="metrics"}`` falls to 0.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from metrics.catalog import BROKER_STATES, CATALOG, STATES
from metrics.facts import (
    ControllerFacts,
    ProcessFacts,
    QueueFacts,
    RaftFacts,
    ScrubFacts,
    SnapshotFacts,
    StorageFacts,
)
from metrics.health import Check, run_checks

REPLICA_SERIES_MAX = 64
"""Replicas with series of their own: voters first, then observers by id. Others are counted."""
FEATURE_SERIES_MAX = 64

Sample = tuple[str, tuple[str, ...], float]
"""Catalog name, label values in the catalog's order, value."""

_log = logging.getLogger(__name__)


def _nothing() -> None:
    return None


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the gauges are read from. Called on every scrape; None leaves the part out."""

    raft: Callable[[], RaftFacts | None] = _nothing
    storage: Callable[[], StorageFacts | None] = _nothing
    scrub: Callable[[], ScrubFacts | None] = _nothing
    snapshot: Callable[[], SnapshotFacts | None] = _nothing
    controller: Callable[[], ControllerFacts | None] = _nothing
    queues: Callable[[], Sequence[QueueFacts]] = tuple
    process: Callable[[], ProcessFacts | None] = _nothing
    busy_ratio: Callable[[], float | None] = _nothing
    checks: Sequence[Check] = ()


class GaugeCollector(Collector):
    """The scraped half of the catalog.

    Sources are called on the thread that renders the page; with ``metrics.http`` that is the
    event loop, so a source may look at what the loop owns but must not block.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        sources: Sources,
        *,
        version: str,
        node_id: int,
        cluster_id: str,
    ) -> None:
        self._sources = sources
        self._fixed: tuple[Sample, ...] = (
            ("quorate_build_info", (version,), 1),
            ("quorate_node_info", (str(node_id), cluster_id), 1),
        )
        registry.register(self)

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Nothing to announce: keeps registration from reading the sources."""
        return ()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """All gauges that have a value now."""
        families: dict[str, GaugeMetricFamily] = {}
        for name, labels, value in self._samples():
            if name not in families:
                row = CATALOG[name]
                families[name] = GaugeMetricFamily(name, row.help, labels=row.labels)
            families[name].add_metric(labels, value)
        yield from families.values()

    def _samples(self) -> Iterator[Sample]:
        yield from self._fixed
        sources = self._sources
        parts: tuple[Callable[[], list[Sample]], ...] = (
            lambda: _raft_samples(sources.raft()),
            lambda: _storage_samples(sources.storage()),
            lambda: _scrub_samples(sources.scrub()),
            lambda: _snapshot_samples(sources.snapshot()),
            lambda: _controller_samples(sources.controller()),
            lambda: _queue_samples(sources.queues()),
            lambda: _process_samples(sources.process()),
            lambda: _busy_samples(sources.busy_ratio()),
            lambda: [
                ("quorate_check_ok", (result.name,), float(result.ok))
                for result in run_checks(sources.checks)
            ],
        )
        all_well = True
        for part in parts:
            try:
                samples = part()
            except Exception:  # noqa: BLE001 - one broken gauge must not blind the operator
                _log.exception("event=metrics_source_failed")
                all_well = False
                continue
            yield from samples
        yield "quorate_check_ok", ("metrics",), float(all_well)


def _raft_samples(facts: RaftFacts | None) -> list[Sample]:
    if facts is None:
        return []
    samples: list[Sample] = [
        ("quorate_raft_state", (state,), float(state == facts.state)) for state in STATES
    ]
    plain = {
        "leader_id": facts.leader_id,
        "voted_id": facts.voted_id,
        "epoch": facts.epoch,
        "can_write": facts.can_write,
        "high_watermark": facts.high_watermark,
        "log_start_offset": facts.log_start_offset,
        "log_end_offset": facts.log_end_offset,
        "log_end_epoch": facts.log_end_epoch,
        "voters": facts.voters,
        "is_voter": facts.is_voter,
        "observers": sum(not replica.is_voter for replica in facts.replicas),
        "hellos_refused": facts.hellos_refused,
        "turned_away": facts.turned_away,
        "clones_refused": facts.clones_refused,
        "impostors_refused": facts.impostors_refused,
        "frames_dropped": facts.frames_dropped,
        "relay_hops": facts.relay_hops,
        "relay_downstream": facts.downstream,
        "relay_subtree_lag_records": facts.subtree_lag_records,
        "relay_subtree_low_offset": facts.subtree_low,
        "relay_subtree_low_provisional": facts.is_subtree_low_provisional,
        "voter_change_pending": facts.voter_change_pending,
        "history_disputed": facts.in_divergence_resolution,
        "replicas_unlisted": max(0, len(facts.replicas) - REPLICA_SERIES_MAX),
    }
    samples += [(f"quorate_raft_{name}", (), float(value)) for name, value in plain.items()]
    samples += [
        ("quorate_raft_digests_compared", (result,), float(count))
        for result, count in facts.digests.items()
    ]
    listed = sorted(facts.replicas, key=lambda replica: (not replica.is_voter, replica.id))
    for replica in listed[:REPLICA_SERIES_MAX]:
        labels = (str(replica.id), "voter" if replica.is_voter else "observer")
        samples.append(("quorate_raft_replica_lag_records", labels, replica.lag_records))
        if replica.fetch_age_seconds is not None:
            samples.append(
                ("quorate_raft_replica_fetch_age_seconds", labels, replica.fetch_age_seconds)
            )
    return samples


def _scrub_samples(facts: ScrubFacts | None) -> list[Sample]:
    if facts is None:
        return []
    return [
        ("quorate_scrub_passes", (), facts.passes),
        ("quorate_scrub_read_bytes", (), facts.read_bytes),
        ("quorate_scrub_findings", (), facts.findings),
        ("quorate_scrub_age_seconds", (), facts.age_seconds),
    ]


def _storage_samples(facts: StorageFacts | None) -> list[Sample]:
    if facts is None:
        return []
    return [
        ("quorate_log_segments", (), facts.log_segments),
        ("quorate_log_size_bytes", (), facts.log_bytes),
        ("quorate_disk_free_bytes", (), facts.disk_free_bytes),
        ("quorate_quarantined_files", (), facts.quarantined_files),
    ]


def _snapshot_samples(facts: SnapshotFacts | None) -> list[Sample]:
    if facts is None:
        return []
    return [
        ("quorate_snapshots", (), facts.count),
        ("quorate_snapshot_size_bytes", (), facts.size_bytes),
        ("quorate_snapshot_end_offset", (), facts.end_offset),
        ("quorate_snapshot_lag_records", (), facts.lag_records),
        ("quorate_snapshot_age_seconds", (), facts.age_seconds),
        ("quorate_snapshot_changed_ratio", (), facts.changed_ratio),
    ]


def _controller_samples(facts: ControllerFacts | None) -> list[Sample]:
    if facts is None:
        return []
    samples: list[Sample] = [
        ("quorate_applied_end_offset", (), facts.applied_end_offset),
        ("quorate_applied_lag_records", (), facts.applied_lag_records),
        ("quorate_applied_timestamp_seconds", (), facts.applied_timestamp_ms / 1000),
        ("quorate_topics", (), facts.topics),
        ("quorate_partitions", (), facts.partitions),
        ("quorate_partitions_offline", (), facts.partitions_offline),
        ("quorate_partitions_not_preferred", (), facts.partitions_not_preferred),
        ("quorate_producers", (), facts.producers),
    ]
    samples += [
        ("quorate_brokers", (state,), facts.brokers.get(state, 0)) for state in BROKER_STATES
    ]
    samples += [
        ("quorate_feature_level", (feature,), facts.features[feature])
        for feature in sorted(facts.features)[:FEATURE_SERIES_MAX]
    ]
    return samples


def _queue_samples(queues: Sequence[QueueFacts]) -> list[Sample]:
    samples: list[Sample] = []
    for queue in queues:
        samples.append(("quorate_queue_size", (queue.name,), queue.size))
        samples.append(("quorate_queue_size_max", (queue.name,), queue.size_max))
        samples.append(("quorate_queue_refused", (queue.name,), queue.refused))
    return samples


def _process_samples(facts: ProcessFacts | None) -> list[Sample]:
    if facts is None:
        return []
    return [
        ("quorate_tasks_restarted", (), facts.tasks_restarted),
        ("quorate_log_lines_suppressed", (), facts.log_lines_suppressed),
    ]


def _busy_samples(ratio: float | None) -> list[Sample]:
    return [] if ratio is None else [("quorate_event_loop_busy_ratio", (), ratio)]

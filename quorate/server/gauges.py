"""Every gauge of a server: name, meaning and where its value is read, declared once.

Gauges are looked up at a scrape (``metrics.collectors``), as the counters of ``counters.py`` are;
other counters and histograms are fed by events (``metrics.catalog``). docs/reference/metrics.md is
generated from all of them.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable

from metrics import catalog
from metrics.collectors import Reading, ScrapedMetric
from quorate import __version__
from quorate.replica.answering_leader import answering_leader
from quorate.server.scrape import Scrape
from quorum.core.state.replica_progress import ReplicaView
from quorum.types import shown_high_watermark

REPLICA_SERIES_MAX = 64
"""Replicas with series of their own: voters first, then observers by id. Others are counted."""
FEATURE_SERIES_MAX = 64
STATES = ("unattached", "prospective", "candidate", "leader", "follower", "observer", "resigned")
BROKER_STATES = ("active", "fenced", "controlled_shutdown")


def _state(scrape: Scrape) -> dict[str, float]:
    state = scrape.node.role_name.lower()
    if state == "follower" and not scrape.node.is_voter:
        state = "observer"
    return {each: each == state for each in STATES}


def _listed(
    scrape: Scrape, value: Callable[[ReplicaView], float | None]
) -> dict[tuple[str, ...], float]:
    return {
        (str(view.key.id), "voter" if view.is_voter else "observer"): found
        for view in scrape.replicas[:REPLICA_SERIES_MAX]
        if (found := value(view)) is not None
    }


def _lag_records(scrape: Scrape) -> Reading:
    end = scrape.node.log_end.offset
    return _listed(scrape, lambda view: max(0, end - max(0, view.log_end_offset)))


def _fetch_age_seconds(scrape: Scrape) -> Reading:
    def age(view: ReplicaView) -> float | None:
        return (scrape.now_ms - view.last_fetch_ms) / 1000 if view.last_fetch_ms >= 0 else None

    return _listed(scrape, age)


def _subtree_lag_records(scrape: Scrape) -> Reading:
    low = scrape.tree.subtree_low
    return max(0, scrape.node.high_watermark - low) if low >= 0 else 0


def _quarantined_files(scrape: Scrape) -> Reading:
    stores = scrape.replica.stores
    lost = sum(len(loss.segments) for _, loss in stores.report.losses)
    return len(stores.snapshots.quarantined) + lost + bool(stores.report.recovery.restored_start)


def _applied_end_offset(scrape: Scrape) -> int:
    return scrape.image.provenance.end_offset


def _brokers(scrape: Scrape) -> Reading:
    found = Counter(
        "fenced" if broker.fenced
        else "controlled_shutdown" if broker.in_controlled_shutdown
        else "active"
        for broker in scrape.image.brokers.values()
    )  # fmt: skip
    return {state: found[state] for state in BROKER_STATES}


def _feature_levels(scrape: Scrape) -> Reading:
    return dict(sorted(scrape.image.features.levels.items())[:FEATURE_SERIES_MAX])


def _queue_sizes(scrape: Scrape) -> dict[str, float]:
    return {
        "held_fetches": scrape.node.held_fetches,
        "commands": scrape.controller.queue_length,
        "groups_in_flight": scrape.controller.groups_in_flight,
        **{each.name: each.open_count for each in scrape.quotas},
    }


def _queue_sizes_max(scrape: Scrape) -> Reading:
    return {
        "held_fetches": scrape.held_fetches_max,
        "commands": scrape.controller.config.queue_commands_max,
        "groups_in_flight": scrape.controller.config.groups_in_flight_max,
        **{each.name: each.most for each in scrape.quotas},
    }


def _node_info(scrape: Scrape) -> dict[tuple[str, ...], float]:
    return {(str(scrape.node.me.id), scrape.replica.stores.identity.cluster_id): 1}


def _gauge(
    name: str,
    help: str,  # noqa: A002
    read: Callable[[Scrape], Reading],
    *labels: str,
    kafka: str = "",
) -> ScrapedMetric[Scrape]:
    return ScrapedMetric(catalog.gauge(name, help, *labels, kafka=kafka), read)


RAFT_GAUGES = (
    _gauge("raft_state", "1 for the state this replica is in, 0 for the others.", _state, "state",
           kafka="current-state"),
    _gauge("raft_leader_id", "Node id of the leader, -1 when none is known that answers.",
           lambda s: answering_leader(s.node), kafka="current-leader, CurrentControllerId"),
    _gauge("raft_voted_id", "Node id voted for in this epoch, -1 when none.",
           lambda s: s.node.voted_id, kafka="current-vote"),
    _gauge("raft_epoch", "Current epoch.", lambda s: s.node.epoch, kafka="current-epoch"),
    _gauge("raft_can_write", "1 while this node is the leader and accepts writes.",
           lambda s: s.node.can_write, kafka="ActiveControllerCount"),
    _gauge("raft_high_watermark",
           "Everything below this offset is committed; -1 while it is not known.",
           lambda s: shown_high_watermark(s.node.high_watermark),
           kafka="high-watermark, LastCommittedRecordOffset"),
    _gauge("raft_log_start_offset", "First offset kept in the log.",
           lambda s: s.node.log_start.offset),
    _gauge("raft_log_end_offset", "Offset the next record will get.",
           lambda s: s.node.log_end.offset, kafka="log-end-offset"),
    _gauge("raft_log_end_epoch", "Epoch of the last record.", lambda s: s.node.log_end.epoch,
           kafka="log-end-epoch"),
    _gauge("raft_voters", "Voters in the set in force.", lambda s: len(s.node.voters),
           kafka="number-of-voters"),
    _gauge("raft_is_voter", "1 while this replica is in the voter set in force.",
           lambda s: s.node.is_voter),
    _gauge("raft_observers", "Observers the leader knows; 0 elsewhere.",
           lambda s: sum(not view.is_voter for view in s.replicas), kafka="number-of-observers"),
    _gauge("raft_observers_stranded",
           "Observers in a later epoch than this leader, which they cannot follow; 0 elsewhere.",
           lambda s: len(s.node.replicas_ahead())),
    _gauge("raft_relay_hops", "Relays between this replica and the leader.",
           lambda s: len(s.tree.path)),
    _gauge("raft_relay_downstream", "Observers that fetch from this relay.",
           lambda s: len(s.tree.downstream)),
    _gauge("raft_relay_subtree_lag_records",
           "This relay's high watermark minus the lowest offset its subtree needs.",
           _subtree_lag_records),
    _gauge("raft_relay_subtree_low_offset",
           "Lowest offset that this relay reports its subtree to need; -1 without anybody below.",
           lambda s: s.tree.subtree_low),
    _gauge("raft_relay_subtree_low_provisional",
           "1 while that offset stands in for observers not seen since a relay's restart.",
           lambda s: s.tree.is_low_provisional),
    _gauge("raft_voter_change_pending", "1 while a change of the voter set is not committed.",
           lambda s: s.node.voters_offset >= s.node.high_watermark,
           kafka="uncommitted-voter-change"),
    _gauge("raft_divergence_unresolved",
           "1 while this log differs from another replica's, or was found wrong.",
           lambda s: s.node.chain.resolution is not None or bool(s.node.chain.quarantined_log)),
    _gauge("raft_replica_lag_records", "Leader's log end minus what the replica has fetched.",
           _lag_records, "replica", "role"),
    _gauge("raft_replica_fetch_age_seconds", "Time since the replica's last fetch.",
           _fetch_age_seconds, "replica", "role"),
    _gauge("raft_replicas_unlisted",
           "Replicas beyond the limit of those that get series of their own.",
           lambda s: max(0, len(s.replicas) - REPLICA_SERIES_MAX)),
    _gauge("log_segments", "Segment files of the metadata log.",
           lambda s: len(s.replica.stores.log.segment_bases)),
    _gauge("log_size_bytes", "Bytes of the metadata log on disk.",
           lambda s: s.replica.stores.log.size_bytes),
    _gauge("disk_free_bytes", "Free space of the data directory's file system.",
           lambda s: shutil.disk_usage(s.replica.stores.directory).free),
    _gauge("quarantined_files", "Damaged files set aside in the data directory now.",
           _quarantined_files),
    _gauge("scrub_age_seconds", "Time since such a pass was complete; -1 for never.",
           lambda s: s.scrubber.age_seconds),
    _gauge("event_loop_busy_ratio", "Share of time the event loop was working, since last scrape.",
           lambda s: s.busy_ratio(), kafka="poll-idle-ratio-avg, AvgIdleRatio"),
)  # fmt: skip

SNAPSHOT_GAUGES = (
    _gauge("snapshot_size_bytes", "Size of the newest checkpoint, 0 when there is none.",
           lambda s: s.checkpoints.size_bytes,
           kafka="SnapshotSizeBytes, LatestSnapshotGeneratedBytes"),
    _gauge("snapshot_lag_records", "High watermark minus the newest checkpoint's end offset.",
           lambda s: s.checkpoints.lag_records, kafka="SnapshotLag"),
    _gauge("snapshot_end_offset", "End offset of the newest checkpoint, 0 when there is none.",
           lambda s: s.checkpoints.end_offset),
    _gauge("snapshot_age_seconds",
           "Time since the newest checkpoint was finished, or since the start.",
           lambda s: s.replica.checkpoints.age_ms / 1000, kafka="LatestSnapshotGeneratedAgeMs"),
    _gauge("snapshot_changed_ratio",
           "Share of the newest checkpoint's records changed since it was written.",
           lambda s: s.controller.checkpoint.changes.ratio),
    _gauge("snapshots", "Checkpoint files kept.", lambda s: s.checkpoints.count),
)  # fmt: skip

CONTROLLER_GAUGES = (
    _gauge("applied_end_offset", "Everything below this offset is in the image.",
           _applied_end_offset, kafka="LastAppliedRecordOffset, last-applied-record-offset"),
    _gauge("applied_timestamp_seconds", "Append time of the last applied record.",
           lambda s: s.image.provenance.timestamp_ms / 1000,
           kafka="LastAppliedRecordTimestamp, last-applied-record-timestamp"),
    _gauge("applied_lag_records", "High watermark minus the applied end offset.",
           lambda s: max(0, s.node.high_watermark - _applied_end_offset(s)),
           kafka="LastAppliedRecordLagMs, last-applied-record-lag-ms"),
    _gauge("brokers", "Registered brokers by state.", _brokers, "state",
           kafka="ActiveBrokerCount, FencedBrokerCount, ControlledShutdownBrokerCount"),
    _gauge("topics", "Topics in the image.", lambda s: len(s.image.topics.names),
           kafka="GlobalTopicCount"),
    _gauge("partitions", "Partitions in the image.", lambda s: s.image.topics.partition_count,
           kafka="GlobalPartitionCount"),
    _gauge("partitions_offline", "Partitions without a leader.",
           lambda s: len(s.image.topics.without_leader()), kafka="OfflinePartitionsCount"),
    _gauge("producers", "Clients whose sequence numbers are kept.",
           lambda s: len(s.image.producers.states)),
    _gauge("feature_level", "Finalised level of a feature.", _feature_levels, "feature",
           kafka="FinalizedLevel, CurrentMetadataVersion"),
)  # fmt: skip

PROCESS_GAUGES = (
    _gauge("queue_size", "What a bounded queue holds now (held fetches, open commands ...).",
           _queue_sizes, "queue"),
    _gauge("queue_size_max", "What a bounded queue may hold.", _queue_sizes_max, "queue"),
    _gauge("build_info", "Always 1; the labels tell the version.", lambda _: {__version__: 1},
           "version"),
    _gauge("node_info", "Always 1; the labels tell who this is.", _node_info, "node_id",
           "cluster_id"),
)  # fmt: skip

GAUGES = RAFT_GAUGES + SNAPSHOT_GAUGES + CONTROLLER_GAUGES + PROCESS_GAUGES
"""All gauges but ``quorate_check_ok``."""

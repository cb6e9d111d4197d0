"""Every metric of Quorate in one table: name, type, labels, help, buckets.

Nothing else in the project may invent a metric name. ``metrics.families`` and
``metrics.collectors`` make their metrics from here, metrics/DESIGN.md lists the same names, and
tests compare all three. Units are Prometheus base units (seconds, bytes), the prefix is
``quorate_``, and no label carries a topic, a partition number, a principal or an address.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

PREFIX = "quorate_"


class Kind(Enum):
    """Prometheus types in use."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """One row of the catalog. ``name`` is complete, with prefix and a counter's ``_total``."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    """Upper bounds in base units, ascending, without infinity; histograms only."""
    kafka: str = ""
    """Nearest metric of Kafka or of KIP-630, where there is one."""


STATES = ("unattached", "prospective", "candidate", "leader", "follower", "observer", "resigned")
BROKER_STATES = ("active", "fenced", "controlled_shutdown")

# A sync is 0.1 ms on a good disk and seconds on a dying one.
SYNC_BUCKETS = tuple(0.0001 * 2**step for step in range(17))
# A commit is at best one sync and one round trip; the request deadline is two seconds.
COMMIT_BUCKETS = (
    0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.0, 2.0, 4.0,
)  # fmt: skip
# Applying one committed range is pure computation: from microseconds to a bulk load's second.
APPLY_BUCKETS = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
# Fail-fast elections take tens of milliseconds, ordinary ones one to two election timeouts.
ELECTION_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 60.0)
# Snapshots range from an empty cluster to a million partitions.
SNAPSHOT_BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 180.0, 600.0)
RPC_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
BATCH_BUCKETS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 4096.0)


def _counter(name: str, help: str, *labels: str, kafka: str = "") -> Metric:  # noqa: A002
    return Metric(f"{PREFIX}{name}", Kind.COUNTER, help, labels, (), kafka)


def _gauge(name: str, help: str, *labels: str, kafka: str = "") -> Metric:  # noqa: A002
    return Metric(f"{PREFIX}{name}", Kind.GAUGE, help, labels, (), kafka)


def _histogram(
    name: str,
    help: str,  # noqa: A002
    buckets: tuple[float, ...],
    *labels: str,
    kafka: str = "",
) -> Metric:
    return Metric(f"{PREFIX}{name}", Kind.HISTOGRAM, help, labels, buckets, kafka)


RAFT_UPDATED = (
    _histogram("raft_commit_seconds", "Append on the leader until the records are committed.",
               COMMIT_BUCKETS, kafka="commit-latency-avg, -max"),
    _histogram("raft_election_seconds", "Start of an election until a leader is known.",
               ELECTION_BUCKETS, kafka="election-latency-avg, -max"),
    _histogram("raft_read_seconds", "Arrival of a linearizable read until it is confirmed.",
               COMMIT_BUCKETS),
    _histogram("log_sync_seconds", "One sync of the metadata log.", SYNC_BUCKETS),
    _histogram("apply_seconds", "Applying one committed range to the image.", APPLY_BUCKETS),
    _histogram("raft_append_group_batches", "Batches written with one append.", BATCH_BUCKETS),
    _counter("raft_appended_records_total", "Records added to this log, by where they came from.",
             "source", kafka="append-records-rate, fetch-records-rate"),
    _counter("raft_role_changes_total", "Times this replica entered a role.", "state"),
    _counter("raft_leader_changes_total", "Times this replica learned of a new leader or "
                                          "leadership term.",
             kafka="NewActiveControllersCount"),
    _counter("raft_leader_lost_total", "Times the leader's process was found gone."),
    _counter("raft_transfers_total", "Leadership transfers that ended here.", "outcome"),
    _counter("raft_process_pauses_total", "Times this process did not run for too long."),
    _counter("raft_disk_stalls_total", "Times the disk completed no write for too long."),
    _counter("raft_voter_changes_total",
             "Changes of the voter set that ended on this leader, refused ones included.",
             "change", "result"),
    _counter("raft_self_registration_requests_total",
             "Times this replica asked its leader about its own voter entry.", "change"),
    _counter("raft_replicas_regressed_total",
             "Unannounced Fetches below what that replica had acknowledged: rolled-back disks."),
    _counter("raft_voter_disqualified_total",
             "Times this node found itself disqualified from voting, once per start since."),
    _counter("raft_votes_total", "Vote and pre-vote requests evaluated here.", "kind", "decision"),
    _counter("raft_fetches_total", "Fetch positions evaluated here, by answer.", "answer"),
    _counter("raft_requests_refused_total", "Peer requests answered with an error.",
             "request", "error"),
    _counter("raft_messages_ignored_total", "Peer messages dropped as stale or never asked for.",
             "message"),
    _counter("raft_protocol_violations_total", "Peer messages dropped as against the protocol.",
             "message"),
    _counter("raft_log_divergences_total", "Times this log was cut to agree with the leader."),
    _counter("raft_truncations_refused_total",
             "Times a cut below the high watermark was asked for and refused."),
    _counter("digest_mismatches_total", "Log positions whose digest differed from a peer's."),
    _counter("divergence_resolutions_total", "Divergences about the log's history that were "
                                             "settled, by outcome.",
             "outcome"),
    _counter("digest_uncomparable_total", "Replicas reported because digests cannot be compared."),
    _counter("quarantined_files_total", "Damaged files that were set aside.", "kind"),
    _counter("repaired_files_total",
             "Side files that were missing, damaged or behind the log at a start, and were written "
             "anew.", "kind"),
)  # fmt: skip

SNAPSHOT_UPDATED = (
    _histogram("snapshot_generate_seconds", "Writing one checkpoint of this replica's image.",
               SNAPSHOT_BUCKETS, kafka="GenSnapshotLatencyMs"),
    _histogram("snapshot_load_seconds", "Loading one checkpoint into an image.",
               SNAPSHOT_BUCKETS, kafka="LoadSnapshotLatencyMs"),
    _counter("snapshot_failures_total", "Checkpoints that could not be written or loaded.",
             "operation"),
    _counter("snapshot_downloads_total", "Checkpoint downloads that ended, by outcome.",
             "outcome"),
    _counter("snapshot_downloaded_bytes_total", "Verified bytes received of checkpoints."),
)  # fmt: skip

SERVICE_UPDATED = (
    _counter("rpc_started_total", "Calls begun on this node's gRPC services.",
             "service", "method"),
    _counter("rpc_handled_total", "Calls ended on this node's gRPC services, by status code.",
             "service", "method", "code"),
    _histogram("rpc_handling_seconds", "Length of unary calls on this node's gRPC services.",
               RPC_BUCKETS, "service", "method"),
    _counter("commands_total", "Client commands evaluated, by result (ok, duplicate or error).",
             "command", "result"),
    _counter("queue_rejections_total", "Work refused because a bounded queue was full.", "queue"),
    _counter("metadata_errors_total", "Committed records that could not be applied or published.",
             kafka="MetadataErrorCount"),
)  # fmt: skip

RAFT_SCRAPED = (
    _gauge("raft_state", "1 for the state this replica is in, 0 for the others.", "state",
           kafka="current-state"),
    _gauge("raft_leader_id", "Node id of the leader, -1 when not known.", kafka="current-leader"),
    _gauge("raft_voted_id", "Node id voted for in this epoch, -1 when none.",
           kafka="current-vote"),
    _gauge("raft_epoch", "Current epoch.", kafka="current-epoch"),
    _gauge("raft_can_write", "1 while this node is the leader and accepts writes.",
           kafka="ActiveControllerCount"),
    _gauge("raft_high_watermark", "Everything below this offset is committed.",
           kafka="high-watermark"),
    _gauge("raft_log_start_offset", "First offset kept in the log."),
    _gauge("raft_log_end_offset", "Offset the next record will get.", kafka="log-end-offset"),
    _gauge("raft_log_end_epoch", "Epoch of the last record.", kafka="log-end-epoch"),
    _gauge("raft_voters", "Voters in the set in force.", kafka="number-of-voters"),
    _gauge("raft_is_voter", "1 while this replica is in the voter set in force."),
    _gauge("raft_observers", "Observers the leader knows; 0 elsewhere.",
           kafka="number-of-observers"),
    _gauge("raft_hellos_refused",
           "Streams refused since the start: another cluster, node, configuration or version."),
    _gauge("raft_turned_away",
           "Streams of this node that its peers have refused since the start."),
    _gauge("raft_clones_refused",
           "Streams refused since the start: a second live process with a replica's key."),
    _gauge("raft_impostors_refused",
           "Streams refused since the start: the certificate is another node's."),
    _gauge("raft_frames_dropped",
           "Frames to peers dropped since the start: too large, or behind others that did not "
           "leave."),
    _gauge("raft_relay_hops", "Relays between this replica and the leader."),
    _gauge("raft_relay_downstream", "Observers that fetch from this relay."),
    _gauge("raft_relay_subtree_lag_records",
           "This relay's high watermark minus the lowest offset its subtree needs."),
    _gauge("raft_relay_subtree_low_offset",
           "Lowest offset that this relay reports its subtree to need; -1 without anybody below."),
    _gauge("raft_relay_subtree_low_provisional",
           "1 while that offset stands in for observers not heard of since a relay's restart."),
    _gauge("raft_voter_change_pending", "1 while a change of the voter set is not committed.",
           kafka="uncommitted-voter-change"),
    _gauge("raft_digests_compared", "Fetches whose log digest this leader looked at, by result: "
           "equal, different, too_early, unknown.", "result"),
    _gauge("raft_history_disputed", "1 while this log's history is in question, or found wrong."),
    _gauge("raft_replica_lag_records", "Leader's log end minus what the replica has fetched.",
           "replica", "role", kafka="Lag of describe --replication"),
    _gauge("raft_replica_fetch_age_seconds", "Time since the replica's last fetch.", "replica",
           "role"),
    _gauge("raft_replicas_unlisted",
           "Replicas beyond the limit of those that get series of their own."),
    _gauge("log_segments", "Segment files of the metadata log."),
    _gauge("log_size_bytes", "Bytes of the metadata log on disk."),
    _gauge("disk_free_bytes", "Free space of the data directory's file system."),
    _gauge("quarantined_files", "Damaged files set aside in the data directory now."),
    _gauge("scrub_passes", "Times the node has read all its files again since the start."),
    _gauge("scrub_read_bytes", "Bytes read again in the background since the start."),
    _gauge("scrub_findings", "Damage found by that since the start."),
    _gauge("scrub_age_seconds", "Time since such a pass was complete; -1 for never."),
    _gauge("event_loop_busy_ratio", "Share of time the event loop was working, since last scrape.",
           kafka="1 - poll-idle-ratio-avg"),
)  # fmt: skip

SNAPSHOT_SCRAPED = (
    _gauge("snapshot_size_bytes", "Size of the newest checkpoint, 0 when there is none.",
           kafka="SnapshotSizeBytes, LatestSnapshotGeneratedBytes"),
    _gauge("snapshot_lag_records", "High watermark minus the newest checkpoint's end offset.",
           kafka="SnapshotLag"),
    _gauge("snapshot_end_offset", "End offset of the newest checkpoint, 0 when there is none."),
    _gauge("snapshot_age_seconds",
           "Time since the newest checkpoint was finished, or since the start.",
           kafka="LatestSnapshotGeneratedAgeMs"),
    _gauge("snapshot_changed_ratio",
           "Share of the newest checkpoint's records changed since it was written."),
    _gauge("snapshots", "Checkpoint files kept."),
)  # fmt: skip

CONTROLLER_SCRAPED = (
    _gauge("applied_end_offset", "Everything below this offset is in the image.",
           kafka="LastAppliedRecordOffset"),
    _gauge("applied_timestamp_seconds", "Append time of the last applied record.",
           kafka="LastAppliedRecordTimestamp"),
    _gauge("applied_lag_records", "High watermark minus the applied end offset.",
           kafka="last-applied-record-lag-ms"),
    _gauge("brokers", "Registered brokers by state.", "state",
           kafka="ActiveBrokerCount, FencedBrokerCount, ControlledShutdownBrokerCount"),
    _gauge("topics", "Topics in the image.", kafka="GlobalTopicCount"),
    _gauge("partitions", "Partitions in the image.", kafka="GlobalPartitionCount"),
    _gauge("partitions_offline", "Partitions without a leader.", kafka="OfflinePartitionsCount"),
    _gauge("partitions_not_preferred", "Partitions not led by their first replica.",
           kafka="PreferredReplicaImbalanceCount"),
    _gauge("producers", "Clients whose sequence numbers are kept."),
    _gauge("feature_level", "Finalised level of a feature.", "feature",
           kafka="FinalizedLevel, CurrentMetadataVersion"),
)  # fmt: skip

PROCESS_SCRAPED = (
    _gauge("queue_size", "What a bounded queue holds now (held fetches, open commands ...).",
           "queue"),
    _gauge("queue_size_max", "What a bounded queue may hold.", "queue"),
    _gauge("queue_refused", "Refused since the start because the queue or quota was full.",
           "queue"),
    _gauge("tasks_restarted", "Long-lived tasks started again after a failure, since the start."),
    _gauge("log_lines_suppressed", "Lines kept out of the process log since the start because too "
           "many of one kind came."),
    _gauge("check_ok", "1 while a readiness check passes.", "check"),
    _gauge("build_info", "Always 1; the labels tell the version.", "version"),
    _gauge("node_info", "Always 1; the labels tell who this is.", "node_id", "cluster_id"),
)  # fmt: skip

UPDATED = RAFT_UPDATED + SNAPSHOT_UPDATED + SERVICE_UPDATED
"""Counters and histograms that events drive."""
SCRAPED = RAFT_SCRAPED + SNAPSHOT_SCRAPED + CONTROLLER_SCRAPED + PROCESS_SCRAPED
"""Gauges that are read when somebody asks."""

CATALOG = MappingProxyType({metric.name: metric for metric in UPDATED + SCRAPED})
"""All metrics by name."""

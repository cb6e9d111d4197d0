"""Counters and histograms in one table: name, type, labels, help, buckets.

Gauges, and counters that other parts keep, are declared beside the function that reads them
(``quorate.server.gauges``, ``quorate.server.counters``). All metric names are in these tables, from
which docs/reference/metrics.md is generated. Units are Prometheus base units (seconds, bytes), the
prefix is ``quorate_``, and no label contains a topic, a partition number, a principal or an
address.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

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
    """Nearest metrics of Kafka, separated by commas (``metrics.kafka_names``); empty for none."""


# A sync takes 0.1 ms on a good disk and seconds on a failing one.
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


def counter(name: str, help: str, *labels: str, kafka: str = "") -> Metric:  # noqa: A002
    """Return a counter's row; ``name`` comes without the prefix."""
    return Metric(f"{PREFIX}{name}", Kind.COUNTER, help, labels, (), kafka)


def gauge(name: str, help: str, *labels: str, kafka: str = "") -> Metric:  # noqa: A002
    """Return a gauge's row; ``name`` comes without the prefix."""
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
               COMMIT_BUCKETS, kafka="commit-latency-avg, commit-latency-max"),
    _histogram("raft_election_seconds", "Start of an election until a leader is known.",
               ELECTION_BUCKETS, kafka="election-latency-avg, election-latency-max"),
    _histogram("raft_read_seconds", "Arrival of a linearizable read until it is confirmed.",
               COMMIT_BUCKETS),
    _histogram("log_sync_seconds", "One sync of the metadata log.", SYNC_BUCKETS),
    counter("log_inline_syncs_total", "Syncs of the metadata log on the event loop's thread; the "
                                      "others are the writer thread's."),
    _histogram("apply_seconds", "Applying one committed range to the image.", APPLY_BUCKETS,
               kafka="EventQueueProcessingTimeMs, MetadataBatchProcessingTimeUs"),
    _histogram("raft_append_group_batches", "Batches written with one append.", BATCH_BUCKETS),
    counter("raft_appended_records_total", "Records added to this log, by where they came from.",
            "source", kafka="append-records-rate, fetch-records-rate"),
    counter("raft_role_changes_total", "Times this replica entered a role.", "state"),
    counter("raft_leader_changes_total", "Times this replica learned of a new leader or "
                                         "leadership term.",
            kafka="NewActiveControllersCount"),
    counter("raft_leader_lost_total", "Times the leader's process was found gone."),
    counter("raft_transfers_total", "Leadership transfers that ended here.", "outcome"),
    counter("raft_process_pauses_total", "Times this process did not run for too long."),
    counter("raft_disk_stalls_total", "Times the disk completed no write for too long."),
    counter("raft_voter_changes_total",
            "Changes of the voter set that ended on this leader, refused ones included.",
            "change", "result"),
    counter("raft_self_registration_requests_total",
            "Times this replica asked its leader about its own voter entry.", "change"),
    counter("raft_replicas_regressed_total",
            "Unannounced Fetches below what that replica had acknowledged: rolled-back disks."),
    counter("raft_voter_disqualified_total",
            "Times this node found itself disqualified from voting, once per start since."),
    counter("raft_votes_total", "Vote and pre-vote requests evaluated here.", "kind", "decision"),
    counter("raft_fetches_total", "Fetch positions evaluated here, by answer.", "answer"),
    counter("raft_requests_refused_total", "Peer requests answered with an error.",
            "request", "error"),
    counter("raft_messages_ignored_total", "Peer messages dropped as stale or never asked for.",
            "message"),
    counter("raft_protocol_violations_total", "Peer messages dropped as against the protocol.",
            "message"),
    counter("raft_log_divergences_total", "Times this log was cut to agree with the leader."),
    counter("raft_truncations_refused_total",
            "Times a cut below the high watermark was asked for and refused."),
    counter("digest_mismatches_total", "Log positions whose digest differed from a peer's."),
    counter("divergence_resolutions_total", "Divergences about the log's history that were "
                                            "settled, by outcome.",
            "outcome"),
    counter("digest_uncomparable_total", "Replicas reported because digests cannot be compared."),
    counter("quarantines_total", "Damaged files that were set aside.", "kind"),
    counter("repaired_files_total",
            "Side files that were missing, damaged or behind the log at a start, and were written "
            "anew.", "kind"),
)  # fmt: skip

SNAPSHOT_UPDATED = (
    _histogram("snapshot_generate_seconds", "Writing one checkpoint of this replica's image.",
               SNAPSHOT_BUCKETS, kafka="GenSnapshotLatencyMs"),
    _histogram("snapshot_load_seconds", "Loading one checkpoint into an image.",
               SNAPSHOT_BUCKETS, kafka="LoadSnapshotLatencyMs, HandleLoadSnapshotCount"),
    counter("snapshot_failures_total", "Checkpoints that could not be written or loaded.",
            "operation"),
    counter("snapshot_downloads_total", "Checkpoint downloads that ended, by outcome.",
            "outcome"),
    counter("snapshot_downloaded_bytes_total", "Verified bytes received of checkpoints."),
)  # fmt: skip

SERVICE_UPDATED = (
    counter("rpc_started_total", "Calls begun on this node's gRPC services.",
            "service", "method"),
    counter("rpc_handled_total", "Calls ended on this node's gRPC services, by status code.",
            "service", "method", "code"),
    _histogram("rpc_handling_seconds", "Length of unary calls on this node's gRPC services.",
               RPC_BUCKETS, "service", "method"),
    counter("commands_total", "Client commands evaluated, by result (ok, duplicate or error).",
            "command", "result", kafka="EventQueueOperationsStartedCount"),
    counter("access_denied_total", "Calls, commands and reads that a caller may not make, by "
                                   "cause (role or acl).", "cause"),
    counter("authentications_total", "Exchanges with a password that ended, by outcome "
                                     "(accepted or refused).", "mechanism", "outcome"),
    counter("metadata_errors_total", "Committed records that could not be applied or published.",
            kafka="MetadataErrorCount, metadata-load-error-count, metadata-apply-error-count"),
)  # fmt: skip

CHECK_OK = gauge("check_ok", "1 while a readiness check passes.", "check")

UPDATED = RAFT_UPDATED + SNAPSHOT_UPDATED + SERVICE_UPDATED
"""Counters and histograms that events drive."""

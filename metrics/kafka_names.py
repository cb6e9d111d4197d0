"""Kafka's metrics of a KRaft quorum by name, and the proposal that each comes from.

Rows of the catalog name their nearest ones (``Metric.kafka``). docs/reference/metrics.md has both
directions; a test compares them. Names and meanings are those of Kafka's trunk of August 2026 and,
for KIP-630, of the proposal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class KafkaMetric:
    """One metric of Kafka. ``without`` says why Quorate has none; empty where it has one."""

    kip: str
    name: str
    without: str = ""


KAFKA_METRICS: Final = (
    KafkaMetric("KIP-595", "current-state"),
    KafkaMetric("KIP-595", "current-leader"),
    KafkaMetric("KIP-595", "current-vote"),
    KafkaMetric("KIP-595", "current-epoch"),
    KafkaMetric("KIP-595", "high-watermark"),
    KafkaMetric("KIP-595", "log-end-offset"),
    KafkaMetric("KIP-595", "log-end-epoch"),
    KafkaMetric("KIP-595", "number-unknown-voter-connections",
                "every voter has an endpoint in the log; Kafka's is always 0"),
    KafkaMetric("KIP-595", "election-latency-avg"),
    KafkaMetric("KIP-595", "election-latency-max"),
    KafkaMetric("KIP-595", "commit-latency-avg"),
    KafkaMetric("KIP-595", "commit-latency-max"),
    KafkaMetric("KIP-595", "fetch-records-rate"),
    KafkaMetric("KIP-595", "append-records-rate"),
    KafkaMetric("KIP-595", "poll-idle-ratio-avg"),
    KafkaMetric("KIP-630", "GenSnapshotLatencyMs"),
    KafkaMetric("KIP-630", "LoadSnapshotLatencyMs"),
    KafkaMetric("KIP-630", "SnapshotSizeBytes"),
    KafkaMetric("KIP-630", "SnapshotLag"),
    KafkaMetric("KIP-631", "ActiveControllerCount"),
    KafkaMetric("KIP-631", "ActiveBrokerCount"),
    KafkaMetric("KIP-631", "FencedBrokerCount"),
    KafkaMetric("KIP-631", "GlobalTopicCount"),
    KafkaMetric("KIP-631", "GlobalPartitionCount"),
    KafkaMetric("KIP-631", "OfflinePartitionsCount"),
    KafkaMetric("KIP-631", "PreferredReplicaImbalanceCount",
                "`quorate topic elect-leaders --dry-run` shows it by partition"),
    KafkaMetric("KIP-631", "EventQueueTimeMs", "a command waits for one round of the event loop"),
    KafkaMetric("KIP-631", "EventQueueProcessingTimeMs"),
    KafkaMetric("KIP-835", "MetadataErrorCount"),
    KafkaMetric("KIP-835", "LastAppliedRecordOffset"),
    KafkaMetric("KIP-835", "LastAppliedRecordTimestamp"),
    KafkaMetric("KIP-835", "LastAppliedRecordLagMs"),
    KafkaMetric("KIP-835", "LastCommittedRecordOffset"),
    KafkaMetric("KIP-835", "last-applied-record-offset"),
    KafkaMetric("KIP-835", "last-applied-record-timestamp"),
    KafkaMetric("KIP-835", "last-applied-record-lag-ms"),
    KafkaMetric("KIP-835", "metadata-load-error-count"),
    KafkaMetric("KIP-835", "metadata-apply-error-count"),
    KafkaMetric("KIP-853", "number-of-voters"),
    KafkaMetric("KIP-853", "number-of-observers"),
    KafkaMetric("KIP-853", "uncommitted-voter-change"),
    KafkaMetric("KIP-853", "IgnoredStaticVoters",
                "static voters hold until the log names voters; `quorum describe` has them"),
    KafkaMetric("KIP-853", "ignored-static-voters", "as above"),
    KafkaMetric("KIP-938", "TimedOutBrokerHeartbeatCount",
                "heartbeats are commands: `quorate_commands_total` has their results"),
    KafkaMetric("KIP-938", "EventQueueOperationsStartedCount"),
    KafkaMetric("KIP-938", "EventQueueOperationsTimedOutCount"),
    KafkaMetric("KIP-938", "NewActiveControllersCount"),
    KafkaMetric("KIP-938", "CurrentMetadataVersion"),
    KafkaMetric("KIP-938", "HandleLoadSnapshotCount"),
    KafkaMetric("KIP-938", "LatestSnapshotGeneratedBytes"),
    KafkaMetric("KIP-938", "LatestSnapshotGeneratedAgeMs"),
    KafkaMetric("KIP-1131", "TimeSinceLastHeartbeatReceivedMs",
                "no series per broker; `quorate broker list` shows states"),
    KafkaMetric("KIP-1131", "BrokerRegistrationState",
                "no series per broker; `quorate broker list` shows states"),
    KafkaMetric("KIP-1131", "ControlledShutdownBrokerCount"),
    KafkaMetric("KIP-1180", "FinalizedLevel"),
    KafkaMetric("KIP-1180", "maximum-supported-level", "`quorate version` shows them"),
    KafkaMetric("KIP-1180", "minimum-supported-level", "`quorate version` shows them"),
    KafkaMetric("KIP-1190", "AvgIdleRatio"),
    KafkaMetric("trunk", "current-vote-directory-id", "text is no value; the log names it"),
    KafkaMetric("trunk", "CurrentControllerId"),
    KafkaMetric("trunk", "MetadataBatchProcessingTimeUs"),
    KafkaMetric("trunk", "MetadataBatchSizes",
                "`quorate_raft_append_group_batches` has the groups of a leader"),
    KafkaMetric("trunk", "UncleanLeaderElectionsPerSec",
                "`quorate audit leaders` shows each election and its cause"),
    KafkaMetric("trunk", "ElectionFromEligibleLeaderReplicasPerSec",
                "`quorate audit leaders` shows each election and its cause"),
)  # fmt: skip
KIP_OF: Final = {each.name: each.kip for each in KAFKA_METRICS}

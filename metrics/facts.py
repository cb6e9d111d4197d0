"""What the scraped gauges are read from: plain values that the composition root fills in.

Each is made afresh for every scrape. Nothing here knows where a value comes from, so metrics
depend on no other room.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ReplicaFacts:
    """One other replica as the leader sees it."""

    id: int
    is_voter: bool
    lag_records: int
    fetch_age_seconds: float | None
    """None until the replica has fetched once."""


@dataclass(frozen=True, slots=True)
class RaftFacts:
    """Where this replica stands. Offsets follow the house rule: ends are exclusive."""

    role: str
    """The core's role name, any case; a follower that does not vote counts as observer."""
    is_voter: bool
    leader_id: int
    voted_id: int
    epoch: int
    can_write: bool
    high_watermark: int
    log_start_offset: int
    log_end_offset: int
    log_end_epoch: int
    voters: int
    voter_change_pending: bool = False
    replicas: tuple[ReplicaFacts, ...] = ()
    """On the leader only; empty elsewhere."""
    digests: Mapping[str, int] = field(default_factory=dict)
    """Digests of Fetches compared in this life, by result."""
    in_divergence_resolution: bool = False
    hellos_refused: int = 0
    """Streams ended for a wrong cluster, node, configuration or version."""
    turned_away: int = 0
    """Outgoing streams that the peer ended with a refusal."""
    clones_refused: int = 0
    """Streams of a second live process with one replica key."""
    impostors_refused: int = 0
    """Streams whose other end shows another node's certificate."""
    frames_dropped: int = 0
    """Frames to peers that found their stream's queue full, or were too large."""
    relay_hops: int = 0
    """Relays between this replica and the leader."""
    downstream: int = 0
    """Observers that fetch from this replica."""
    subtree_lag_records: int = 0
    """How far behind this relay's high watermark the last of its subtree is, as it reports it."""
    subtree_low: int = -1
    """What this relay reports its subtree to need; -1 without anybody below it."""
    is_subtree_low_provisional: bool = False
    """Whether that stands in for observers not heard of since a relay has started again."""

    @property
    def state(self) -> str:
        """The role with observers told apart, as in the catalog's ``STATES``."""
        role = self.role.lower()
        return "observer" if role == "follower" and not self.is_voter else role


@dataclass(frozen=True, slots=True)
class StorageFacts:
    """The data directory. Counts and bytes."""

    log_segments: int
    log_bytes: int
    disk_free_bytes: int
    quarantined_files: int


@dataclass(frozen=True, slots=True)
class ScrubFacts:
    """Reading the own files again in the background, in this life."""

    passes: int = 0
    read_bytes: int = 0
    findings: int = 0
    age_seconds: float = -1.0
    """Since a pass was complete; below 0 for never."""


@dataclass(frozen=True, slots=True)
class SnapshotFacts:
    """The newest checkpoint and how far the log has moved on since."""

    count: int
    size_bytes: int
    end_offset: int
    lag_records: int
    """High watermark minus ``end_offset``."""
    age_seconds: float
    changed_ratio: float


@dataclass(frozen=True, slots=True)
class ControllerFacts:
    """The applied image in numbers."""

    applied_end_offset: int
    applied_lag_records: int
    """High watermark minus ``applied_end_offset``."""
    applied_timestamp_ms: int
    brokers: Mapping[str, int] = field(default_factory=dict)
    """Count by state; states outside the catalog's ``BROKER_STATES`` are not shown."""
    topics: int = 0
    partitions: int = 0
    partitions_offline: int = 0
    partitions_not_preferred: int = 0
    producers: int = 0
    features: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """One bounded queue by its configured name."""

    name: str
    size: int
    size_max: int
    refused: int = 0
    """Refused since the start because it was full."""


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """How the process itself fares."""

    tasks_restarted: int = 0
    log_lines_suppressed: int = 0

"""What happened and why, as plain values: the one vocabulary of logs, metrics and transcripts.

Names are past tense. Nothing in the core reads them; the runtime renders each as one
``key=value`` line, ``metrics.observer`` counts them and scenarios print them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from quorum.errors import ErrorCode
from quorum.types import NodeId, OffsetAndEpoch, ReplicaKey, SnapshotId


@dataclass(frozen=True, slots=True)
class RoleChanged:
    """The node moved to ``role`` in ``epoch``."""

    before: str
    role: str
    epoch: int
    leader_id: NodeId
    reason: str


@dataclass(frozen=True, slots=True)
class VoteDecided:
    """A vote or pre-vote request was judged."""

    candidate: ReplicaKey
    epoch: int
    pre_vote: bool
    granted: bool
    reason: str


@dataclass(frozen=True, slots=True)
class FetchClassified:
    """A Fetch position was judged: ``serve``, ``diverging`` or ``snapshot``."""

    replica: ReplicaKey
    offset: int
    last_fetched_epoch: int
    answer: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class RequestRefused:
    """A request was answered with an error and left no trace in the state."""

    sender: NodeId
    request: str
    error: ErrorCode


@dataclass(frozen=True, slots=True)
class MessageIgnored:
    """A message was dropped: stale, never asked for, or against the protocol."""

    sender: NodeId
    message: str
    reason: str
    is_violation: bool = False


@dataclass(frozen=True, slots=True)
class RecordsAppended:
    """Records were added to the log's end (not yet durable)."""

    base_offset: int
    end_offset: int
    epoch: int


@dataclass(frozen=True, slots=True)
class LogDiverged:
    """This follower's log differed from the leader's and was cut to ``end_offset``."""

    end_offset: int
    old_end: OffsetAndEpoch
    leader_said: OffsetAndEpoch


@dataclass(frozen=True, slots=True)
class WatermarkMoved:
    """The high watermark rose."""

    before: int
    high_watermark: int


@dataclass(frozen=True, slots=True)
class DownloadStarted:
    """A snapshot download began, or restarted from byte 0."""

    snapshot_id: SnapshotId
    leader_id: NodeId


@dataclass(frozen=True, slots=True)
class ChunkReceived:
    """A verified slice of a snapshot arrived."""

    snapshot_id: SnapshotId
    position: int
    chunk_bytes: int
    size: int


@dataclass(frozen=True, slots=True)
class DownloadEnded:
    """A snapshot download ended: ``installed``, or why not."""

    snapshot_id: SnapshotId
    outcome: str


@dataclass(frozen=True, slots=True)
class LogStartAdvanced:
    """The log now starts at ``start``."""

    start: OffsetAndEpoch


@dataclass(frozen=True, slots=True)
class LeaderLost:
    """The leader's process refused a reconnect: fail-fast mode (decision 10)."""

    leader_id: NodeId
    epoch: int


@dataclass(frozen=True, slots=True)
class VoterSetChanged:
    """The voter set in force changed at ``offset`` (-1: from a checkpoint or format)."""

    offset: int
    voters: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class TruncationRefused:
    """The leader asked to cut below the high watermark; the log was left as it is (279.4)."""

    asked_end: int
    high_watermark: int


@dataclass(frozen=True, slots=True)
class ReplicaRegressed:
    """A replica fetched from below what it had acknowledged: lost, damaged or rolled-back data."""

    replica: ReplicaKey
    acknowledged: int
    fetch_offset: int


@dataclass(frozen=True, slots=True)
class StandingRefused:
    """The election timer expired but this node may not stand, for ``reason``."""

    epoch: int
    reason: str


@dataclass(frozen=True, slots=True)
class VoteFloorReached:
    """The log has grown back to the vote floor; the node votes and stands as before."""

    floor: OffsetAndEpoch
    log_end: OffsetAndEpoch


Event: TypeAlias = (
    RoleChanged
    | VoteDecided
    | FetchClassified
    | RequestRefused
    | MessageIgnored
    | RecordsAppended
    | LogDiverged
    | WatermarkMoved
    | DownloadStarted
    | ChunkReceived
    | DownloadEnded
    | LogStartAdvanced
    | LeaderLost
    | VoterSetChanged
    | TruncationRefused
    | ReplicaRegressed
    | StandingRefused
    | VoteFloorReached
)

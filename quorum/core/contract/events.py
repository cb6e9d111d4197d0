"""What happened and why, as plain values: the one vocabulary of logs, metrics and transcripts.

Names are past tense. Nothing in the core reads them; the runtime renders each as one
``key=value`` line, ``metrics.observer`` counts them and scenarios print them.
"""

from __future__ import annotations

from typing import TypeAlias

from quorum.core.contract import reasons
from quorum.core.contract.outcomes import DivergenceOutcome, DownloadOutcome, TransferOutcome
from quorum.errors import ErrorCode
from quorum.types import NO_NODE, NodeId, OffsetAndEpoch, ReplicaKey, SnapshotId
from quorum.values import value


@value
class RoleChanged:
    """The node moved to ``role`` in ``epoch``, because of a message of ``peer`` if one is named."""

    before: str
    role: str
    epoch: int
    leader_id: NodeId
    reason: reasons.RoleChangeReason
    peer: NodeId = NO_NODE


@value
class VoteDecided:
    """A vote or pre-vote request was evaluated; ``reason`` is None for a grant."""

    candidate: ReplicaKey
    epoch: int
    pre_vote: bool
    granted: bool
    reason: reasons.VoteRejection | None = None
    detail: str = ""


@value
class FetchClassified:
    """A Fetch position was evaluated: ``serve``, ``diverging`` or ``snapshot``."""

    replica: ReplicaKey
    offset: int
    last_fetched_epoch: int
    answer: str
    detail: str = ""


@value
class RequestRefused:
    """A request was answered with an error and left no trace in the state."""

    sender: NodeId
    request: str
    error: ErrorCode


@value
class MessageIgnored:
    """A message was dropped: stale, never asked for, or against the protocol."""

    sender: NodeId
    message: str
    reason: reasons.IgnoreReason
    detail: str = ""
    is_violation: bool = False


@value
class RecordsAppended:
    """Records were added to the log's end (not yet durable)."""

    base_offset: int
    end_offset: int
    epoch: int


@value
class LogDiverged:
    """This follower's log differed from the leader's and was truncated to ``end_offset``."""

    end_offset: int
    old_end: OffsetAndEpoch
    leader_reported: OffsetAndEpoch


@value
class WatermarkMoved:
    """The high watermark rose."""

    before: int
    high_watermark: int


@value
class DownloadStarted:
    """A snapshot download began, restarted from byte 0, or resumes one of an earlier process."""

    snapshot_id: SnapshotId
    leader_id: NodeId
    position: int = 0


@value
class ChunkReceived:
    """A verified chunk of a snapshot arrived."""

    snapshot_id: SnapshotId
    position: int
    chunk_bytes: int
    size: int


@value
class DownloadEnded:
    """A snapshot download ended."""

    snapshot_id: SnapshotId
    outcome: DownloadOutcome
    detail: str = ""


@value
class LogStartAdvanced:
    """The log now starts at ``start``."""

    start: OffsetAndEpoch


@value
class LeaderLost:
    """The leader's process refused a reconnect: fail-fast mode (ADR 8)."""

    leader_id: NodeId
    epoch: int


@value
class VoterSetChanged:
    """The voter set in force changed at ``offset`` (-1: from a checkpoint or format)."""

    offset: int
    voters: tuple[NodeId, ...]


@value
class VoterChangeStarted:
    """This leader began to change the voter set: ``add``, ``remove`` or ``update``."""

    change: str
    voter: ReplicaKey


@value
class VoterChangeEnded:
    """A change was refused, committed or given up. ``offset`` -1: no record was written."""

    change: str
    voter: ReplicaKey
    error: ErrorCode
    offset: int
    reason: str


@value
class SelfRegistrationAsked:
    """This replica asked its leader to ``add``, ``remove`` or ``update`` its self registration."""

    change: str
    leader_id: NodeId


@value
class SelfRegistrationAnswered:
    """The leader's answer to that request; the voter set shows whether it took effect."""

    error: ErrorCode
    message: str


@value
class VotesNoMore:
    """This disk does not vote although it, or its node's former disk, once did."""

    replica: ReplicaKey
    reason: reasons.NonVoterReason


@value
class TruncationRefused:
    """The leader asked to truncate below the high watermark; the log was left as it is (279.4)."""

    asked_end: int
    high_watermark: int


@value
class ReplicaRegressed:
    """A replica that does not report a loss fetched from below what it had acknowledged."""

    replica: ReplicaKey
    acknowledged: int
    fetch_offset: int


@value
class ObserverStranded:
    """An observer in a later epoch asked this leader, which it may not follow (ADR 44)."""

    replica: ReplicaKey
    epoch: int
    leader_epoch: int
    is_proven: bool


@value
class CampaignRefused:
    """The election timer expired but this node may not campaign, for ``reason``."""

    epoch: int
    reason: reasons.CampaignObstacle
    detail: str = ""


@value
class VoteFloorReached:
    """The log has grown back to the vote floor; the node votes and campaigns as before."""

    floor: OffsetAndEpoch
    log_end: OffsetAndEpoch


@value
class TransferStarted:
    """The leader holds new writes back until ``target`` has its log up to ``end_offset``."""

    target: ReplicaKey
    epoch: int
    end_offset: int
    observer: ReplicaKey | None = None
    """The stranded observer that the next epoch is for; None for a transfer that was asked for."""


@value
class TransferEnded:
    """A leadership transfer ended, in success if it was superseded."""

    target: ReplicaKey
    epoch: int
    outcome: TransferOutcome
    detail: str = ""


@value
class ProcessPaused:
    """This node ran ``late_ms`` after its own deadline; its peers first get time to answer."""

    late_ms: int


@value
class DiskStalled:
    """The disk has completed no write for ``waited_ms``: no leading, campaigning or voting."""

    waited_ms: int


@value
class DiskRecovered:
    """The disk completes writes again, after ``waited_ms``."""

    waited_ms: int


@value
class DigestDiffers:
    """A replica's log digest at an offset of our history is not ours (ADR 5)."""

    replica: ReplicaKey
    offset: int


@value
class DigestNotComparable:
    """A Fetch has no digest, or one that this replica cannot compare; once per leadership term."""

    replica: ReplicaKey
    offset: int


@value
class DivergenceResolutionStarted:
    """Two logs that should be equal below ``end_offset`` seem not to be."""

    conflicting_peer: NodeId
    end_offset: int
    reason: reasons.DivergenceReason


@value
class DivergenceResolutionEnded:
    """How a divergence ended. ``first_offset`` begins the first batch that differs, or is -1."""

    conflicting_peer: NodeId
    outcome: DivergenceOutcome
    first_offset: int


@value
class DamageSuspected:
    """This replica's own files are damaged; ``is_acted_on``: the others can do without it."""

    cause: str
    is_acted_on: bool


@value
class LogQuarantined:
    """This replica's own log is wrong: it stops, having stored ``vote_floor``."""

    first_offset: int
    vote_floor: OffsetAndEpoch
    cause: str


@value
class UpstreamChanged:
    """An observer's records now come from ``peer``: the leader, or a relay and those behind it."""

    peer: NodeId
    path: tuple[NodeId, ...]
    """The relays on the way, nearest first; empty for the leader itself."""


@value
class BootstrapVotersAgreed:
    """This bootstrap voter has agreed to a voter list; its agreement never changes."""

    voters: tuple[NodeId, ...]


@value
class QuorumBootstrapped:
    """Every bootstrap voter (but those the operator exempted) has agreed: epoch 1 may begin."""

    voters: tuple[NodeId, ...]


@value
class VoterDisqualified:
    """This node does not vote with its directory id, now or later, for ``reason``."""

    replica: ReplicaKey
    epoch: int
    reason: reasons.DisqualifiedReason
    detail: str


@value
class CheckpointFailed:
    """A checkpoint of this replica found no space; none is tried again for ``retry_ms``."""

    snapshot_id: SnapshotId
    cause: str
    retry_ms: int


Event: TypeAlias = (
    RoleChanged | VoteDecided | FetchClassified | RequestRefused | MessageIgnored | RecordsAppended
    | LogDiverged | WatermarkMoved | DownloadStarted | ChunkReceived | DownloadEnded |
    LogStartAdvanced | LeaderLost | VoterSetChanged | VoterChangeStarted | VoterChangeEnded |
    SelfRegistrationAsked | SelfRegistrationAnswered | VotesNoMore | TruncationRefused |
    ReplicaRegressed | ObserverStranded | CampaignRefused | VoteFloorReached | TransferStarted |
    TransferEnded | ProcessPaused | DiskStalled | DiskRecovered | DigestDiffers |
    DigestNotComparable | DivergenceResolutionStarted | DivergenceResolutionEnded | DamageSuspected
    | LogQuarantined | UpstreamChanged | BootstrapVotersAgreed | QuorumBootstrapped |
    VoterDisqualified | CheckpointFailed
)  # fmt: skip
